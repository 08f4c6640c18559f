/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a model over HTTP; see remote.h. */
#include "remote.h"

#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "model_error.h"
#include "core/json.h"
#include "runners/builtin/base/log.h"
#include "retry.h"
#include "sse.h"
#include "runners/builtin/base/value.h"

/* What is kept of a body that is no event stream. */
#define BODY_MAX ((size_t)16 * 1024)

typedef struct remote_t {
    const runner_format_t *format;
    const char *url;
    apr_array_header_t *headers;
    const char *body;
    size_t body_length;
    int attempts;
    /* NULL between two attempts. */
    runner_transfer_t *transfer;
    /* Of one attempt. */
    apr_pool_t *pool;
    runner_sse_t sse;
    runner_buffer_t reply;
    int events;
    bool is_complete;
    /* What ended the stream from inside; status 0 means nothing did. */
    runner_model_error_t error;
} remote_t;

static void restart_timer(runner_call_t *call)
{
    call->wake_at = agent_clock_now() + call->model->timeout;
}

void runner_remote_complete(runner_call_t *call)
{
    ((remote_t *)call->state)->is_complete = true;
}

void runner_remote_refuse(runner_call_t *call, int status, const char *message)
{
    remote_t *remote = call->state;

    remote->error.status = status;
    remote->error.said = apr_pstrdup(call->pool, message);
}

static void fail_call(runner_call_t *call, int status, const char *said)
{
    remote_t *remote = call->state;
    runner_model_error_t error = {status, said, remote->attempts,
                                    remote->url};

    runner_model_error_set(&call->problem, &error, call->model, call->pool);
    runner_call_end(call);
}

static void begin_attempt(runner_call_t *call);

/*
 * Tries again if that may help: not after the model has begun to speak, since
 * those who watch have seen it.
 */
static void retry_or_fail(runner_call_t *call, int status, const char *said,
                          apr_interval_time_t asked)
{
    remote_t *remote = call->state;
    apr_interval_time_t delay;
    unsigned random = 0;

    if (remote->attempts >= RUNNER_RETRY_ATTEMPTS
        || runner_answer_has_content(&call->answer)) {
        fail_call(call, status, said);
        return;
    }
    apr_generate_random_bytes((unsigned char *)&random, sizeof(random));
    delay = runner_retry_delay(remote->attempts, asked, random);
    if (delay > RUNNER_RETRY_LONGEST) {
        fail_call(call, status,
                  apr_psprintf(call->pool,
                               "%s%sit asks to wait for %" APR_TIME_T_FMT " s",
                               said ? said : "", said ? "; " : "",
                               apr_time_sec(delay)));
        return;
    }
    runner_log_write(call->run_id,
                         "model %s: attempt %d failed (%s%s), next in "
                         "%" APR_TIME_T_FMT " ms",
                         call->model->label, remote->attempts,
                         status > 0 ? apr_psprintf(call->pool, "%d ", status)
                                    : "",
                         said ? said : "", apr_time_as_msec(delay));
    call->wake_at = agent_clock_now() + delay;
}

static bool take_event(void *baton, const char *name, const char *text,
                       size_t length)
{
    runner_call_t *call = baton;
    remote_t *remote = call->state;
    apr_pool_t *scratch;
    json_object *data;

    remote->events++;
    /* How OpenAI's format says that the stream is over. */
    if (strcmp(text, "[DONE]") == 0) {
        runner_remote_complete(call);
        return true;
    }
    apr_pool_create(&scratch, remote->pool);
    data = runner_value_parse_event(text, length, scratch);
    if (json_object_is_type(data, json_type_object)) {
        remote->format->read_event(call, data);
    }
    else {
        runner_remote_refuse(call, RUNNER_MODEL_ERROR_GARBLED,
                             runner_model_error_read(text, length, scratch));
    }
    apr_pool_destroy(scratch);
    if (call->answer.excess != NULL) {
        runner_remote_refuse(call, RUNNER_MODEL_ERROR_GARBLED,
                             call->answer.excess);
    }
    return remote->error.status == 0;
}

static bool take_bytes(void *baton, int status, const char *bytes,
                       size_t length)
{
    runner_call_t *call = baton;
    remote_t *remote = call->state;
    apr_status_t rv;

    restart_timer(call);
    if (remote->reply.length < BODY_MAX) {
        size_t room = BODY_MAX - remote->reply.length;

        runner_buffer_append(&remote->reply, bytes,
                             length < room ? length : room);
    }
    if (status != 200) {
        return remote->reply.length < BODY_MAX;
    }
    rv = runner_sse_feed(&remote->sse, bytes, length);
    if (rv == APR_ENOSPC) {
        runner_remote_refuse(call, RUNNER_MODEL_ERROR_GARBLED,
                             "an event of more than 1 MiB");
    }
    return rv == APR_SUCCESS;
}

/* A reply with status 200 that brought no complete answer. */
static void judge_stream(runner_call_t *call, const runner_reply_t *reply)
{
    remote_t *remote = call->state;
    const char *said = reply->failure ? reply->failure
                                      : "the stream ended too early";

    if (remote->events == 0 && reply->failure == NULL
        && remote->reply.length > 0) {
        fail_call(
            call, RUNNER_MODEL_ERROR_GARBLED,
            apr_pstrcat(call->pool, "expected an event stream, got ",
                        reply->content_type ? reply->content_type
                                            : "no content type",
                        ": ",
                        runner_model_error_read(remote->reply.bytes,
                                              remote->reply.length, call->pool),
                        NULL));
        return;
    }
    retry_or_fail(call, RUNNER_MODEL_ERROR_CUT, said, -1);
}

static void judge_status(runner_call_t *call, const runner_reply_t *reply)
{
    remote_t *remote = call->state;
    const char *said = runner_model_error_read(runner_buffer_text(&remote->reply),
                                             remote->reply.length, call->pool);

    if (runner_retry_is_worth(reply->status)) {
        retry_or_fail(call, reply->status, said,
                      runner_retry_after(reply->retry_after, apr_time_now()));
    }
    else {
        fail_call(call, reply->status, said);
    }
}

/* The model said inside the stream that something is wrong, or we did. */
static void judge_complaint(runner_call_t *call)
{
    remote_t *remote = call->state;

    if (runner_retry_is_worth(remote->error.status)) {
        retry_or_fail(call, remote->error.status, remote->error.said,
                      -1);
    }
    else {
        fail_call(call, remote->error.status, remote->error.said);
    }
}

static void end_reply(void *baton, const runner_reply_t *reply)
{
    runner_call_t *call = baton;
    remote_t *remote = call->state;

    remote->transfer = NULL;
    call->wake_at = AGENT_CLOCK_NEVER;
    if (remote->error.status != 0) {
        judge_complaint(call);
    }
    else if (remote->is_complete) {
        runner_call_end(call);
    }
    else if (reply->status == 0 && reply->is_final) {
        fail_call(call, RUNNER_MODEL_ERROR_UNREACHABLE, reply->failure);
    }
    else if (reply->status == 0) {
        retry_or_fail(call, RUNNER_MODEL_ERROR_UNREACHABLE, reply->failure, -1);
    }
    else if (reply->status == 200) {
        judge_stream(call, reply);
    }
    else {
        judge_status(call, reply);
    }
    /* Over, or waiting for the next attempt. */
    call->on_change(call->baton);
}

static void reset_attempt(runner_call_t *call)
{
    remote_t *remote = call->state;

    if (remote->pool != NULL) {
        apr_pool_destroy(remote->pool);
    }
    apr_pool_create(&remote->pool, call->pool);
    runner_sse_init(&remote->sse, take_event, call, remote->pool);
    runner_buffer_init(&remote->reply, remote->pool);
    remote->events = 0;
    remote->is_complete = false;
    memset(&remote->error, 0, sizeof(remote->error));
    remote->attempts++;
}

static bool is_full(void *baton)
{
    const runner_call_t *call = baton;

    return call->is_full(call->baton);
}

static void begin_attempt(runner_call_t *call)
{
    remote_t *remote = call->state;
    const char *failure = NULL;
    runner_request_t request;

    reset_attempt(call);
    memset(&request, 0, sizeof(request));
    request.method = "POST";
    request.url = remote->url;
    request.headers = remote->headers;
    request.body = remote->body;
    request.body_length = remote->body_length;
    request.is_full = is_full;
    request.on_bytes = take_bytes;
    request.on_end = end_reply;
    request.baton = call;
    remote->transfer = runner_http_start(call->http, &request, &failure,
                                         remote->pool);
    if (remote->transfer == NULL) {
        fail_call(call, RUNNER_MODEL_ERROR_UNREACHABLE, failure);
        return;
    }
    restart_timer(call);
}

static apr_array_header_t *make_headers(runner_call_t *call,
                                        const runner_format_t *format)
{
    apr_array_header_t *headers = apr_array_make(call->pool, 6,
                                                 sizeof(const char *));

    APR_ARRAY_PUSH(headers, const char *) = "Content-Type: application/json";
    APR_ARRAY_PUSH(headers, const char *) = "Accept: text/event-stream";
    APR_ARRAY_PUSH(headers, const char *) = "User-Agent: agent-runner";
    format->add_headers(headers, call->model, call->pool);
    return headers;
}

/* Only the text of the body stays while the model answers. */
static void make_body(runner_call_t *call, const runner_format_t *format)
{
    remote_t *remote = call->state;
    apr_pool_t *scratch;

    apr_pool_create(&scratch, call->pool);
    remote->body = agent_json_print(format->make_request(call, scratch),
                                    call->pool);
    remote->body_length = strlen(remote->body);
    apr_pool_destroy(scratch);
}

void runner_remote_start(runner_call_t *call, const runner_format_t *format)
{
    remote_t *remote = apr_pcalloc(call->pool, sizeof(*remote));

    call->state = remote;
    call->answer.model_name = call->model->name;
    remote->format = format;
    remote->url = apr_pstrcat(call->pool,
                              call->model->url ? call->model->url : format->url,
                              format->path, NULL);
    remote->headers = make_headers(call, format);
    make_body(call, format);
    begin_attempt(call);
}

void runner_remote_wake(runner_call_t *call)
{
    remote_t *remote = call->state;

    if (remote->transfer == NULL) {
        begin_attempt(call);
        return;
    }
    if (runner_http_is_waiting(remote->transfer)) {
        /* The model was not asked yet. */
        restart_timer(call);
        return;
    }
    runner_http_cancel(remote->transfer);
    remote->transfer = NULL;
    fail_call(call, RUNNER_MODEL_ERROR_SILENT,
              apr_psprintf(call->pool, "%" APR_TIME_T_FMT " ms",
                           apr_time_as_msec(call->model->timeout)));
}

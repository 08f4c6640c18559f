/* SPDX-License-Identifier: Apache-2.0 */
/* One model call over HTTP: attempts, the reply, retries. */
#include "remote.h"

#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "core/clock.h"
#include "core/json.h"
#include "model_error.h"
#include "retry.h"
#include "runners/builtin/base/host.h"
#include "runners/builtin/base/log.h"
#include "runners/builtin/base/value.h"
#include "sse.h"

/* The most bytes of a reply that are kept for the text of an error. */
#define BODY_MAX ((size_t)16 * 1024)

typedef struct remote_t {
    const runner_format_t *format;
    const char *url;
    apr_array_header_t *headers;
    const char *body;
    size_t body_length;
    int attempts;
    /* NULL between attempts. */
    runner_transfer_t *transfer;
    /* The members below are of the current attempt. */
    apr_pool_t *pool;
    runner_sse_t sse;
    /* The beginning of the reply, at most BODY_MAX bytes. */
    agent_buffer_t reply;
    int events;
    /* The stream has ended the answer. */
    bool is_complete;
    /* The error in the stream; status 0 when there is none. */
    runner_model_error_t error;
} remote_t;

static void restart_timer(runner_call_t *call)
{
    call->wake_at = agent_clock_now() + call->model->timeout;
}

void runner_remote_set_complete(runner_call_t *call)
{
    ((remote_t *)call->state)->is_complete = true;
}

void runner_remote_set_error(runner_call_t *call, int status,
                             const char *message)
{
    remote_t *remote = call->state;

    remote->error.status = status;
    remote->error.detail = apr_pstrdup(
        call->pool,
        runner_model_error_hide_key(message, call->model, remote->pool));
}

static void fail_call(runner_call_t *call, int status, const char *detail)
{
    remote_t *remote = call->state;
    runner_model_error_t error = {status, detail, remote->attempts,
                                  remote->url};

    runner_model_error_set(&call->problem, &error, call->model, call->pool);
    runner_call_end(call);
}

static void begin_attempt(runner_call_t *call);

/* Schedules another attempt, unless a piece of the answer has been streamed,
 * which cannot be taken back. */
static void retry_or_fail(runner_call_t *call, int status, const char *detail,
                          apr_interval_time_t retry_after)
{
    remote_t *remote = call->state;
    apr_interval_time_t delay;
    unsigned random = 0;

    if (remote->attempts >= RUNNER_RETRY_ATTEMPTS
        || runner_answer_has_content(&call->answer)) {
        fail_call(call, status, detail);
        return;
    }
    apr_generate_random_bytes((unsigned char *)&random, sizeof(random));
    delay = runner_retry_delay(remote->attempts, retry_after, random);
    if (delay > RUNNER_RETRY_LONGEST) {
        fail_call(call, status,
                  apr_psprintf(call->pool,
                               "%s%sit asks to wait for %" APR_TIME_T_FMT " s",
                               detail ? detail : "", detail ? "; " : "",
                               apr_time_sec(delay)));
        return;
    }
    runner_log_write(call->run_id,
                     "model %s: attempt %d failed (%s%s), next in "
                     "%" APR_TIME_T_FMT " ms",
                     call->model->label, remote->attempts,
                     status > 0 ? apr_psprintf(call->pool, "%d ", status) : "",
                     detail ? detail : "", apr_time_as_msec(delay));
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
    /* The end of a stream in OpenAI's format. */
    if (strcmp(text, "[DONE]") == 0) {
        runner_remote_set_complete(call);
        return true;
    }
    apr_pool_create(&scratch, remote->pool);
    data = runner_value_parse_event(text, length, scratch);
    if (json_object_is_type(data, json_type_object)) {
        remote->format->read_event(call, data);
    }
    else {
        runner_remote_set_error(
            call, RUNNER_MODEL_ERROR_FORMAT,
            runner_model_error_read(text, length, call->model, scratch));
    }
    apr_pool_destroy(scratch);
    if (call->answer.excess != NULL) {
        runner_remote_set_error(call, RUNNER_MODEL_ERROR_FORMAT,
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
    if (agent_buffer_length(&remote->reply) < BODY_MAX) {
        size_t room = BODY_MAX - agent_buffer_length(&remote->reply);

        agent_buffer_append(&remote->reply, bytes,
                            length < room ? length : room);
    }
    if (status != 200) {
        return agent_buffer_length(&remote->reply) < BODY_MAX;
    }
    rv = runner_sse_feed(&remote->sse, bytes, length);
    if (rv == APR_ENOSPC) {
        runner_remote_set_error(call, RUNNER_MODEL_ERROR_FORMAT,
                                "an event of more than 1 MiB");
    }
    return rv == APR_SUCCESS;
}

/* A reply with status 200 but without a complete answer. */
static void end_incomplete(runner_call_t *call, const runner_reply_t *reply)
{
    remote_t *remote = call->state;
    const char *detail = reply->failure ? reply->failure
                                        : "the stream ended too early";

    if (remote->events == 0 && reply->failure == NULL
        && agent_buffer_length(&remote->reply) > 0) {
        fail_call(
            call, RUNNER_MODEL_ERROR_FORMAT,
            apr_pstrcat(
                call->pool, "expected an event stream, got ",
                reply->content_type ? reply->content_type : "no content type",
                ": ",
                runner_model_error_read(agent_buffer_text(&remote->reply),
                                        agent_buffer_length(&remote->reply),
                                        call->model, call->pool),
                NULL));
        return;
    }
    retry_or_fail(call, RUNNER_MODEL_ERROR_INCOMPLETE, detail, -1);
}

/* A reply with another status. */
static void end_refused(runner_call_t *call, const runner_reply_t *reply)
{
    remote_t *remote = call->state;
    const char *detail = runner_model_error_read(
        agent_buffer_text(&remote->reply), agent_buffer_length(&remote->reply),
        call->model, call->pool);

    if (runner_retry_is_worth(reply->status)) {
        retry_or_fail(call, reply->status, detail,
                      runner_retry_after(reply->retry_after, apr_time_now()));
    }
    else {
        fail_call(call, reply->status, detail);
    }
}

/* The stream ended with an error, or broke a limit. */
static void end_failed(runner_call_t *call)
{
    remote_t *remote = call->state;

    if (runner_retry_is_worth(remote->error.status)) {
        retry_or_fail(call, remote->error.status, remote->error.detail, -1);
    }
    else {
        fail_call(call, remote->error.status, remote->error.detail);
    }
}

static void end_reply(void *baton, const runner_reply_t *reply)
{
    runner_call_t *call = baton;
    remote_t *remote = call->state;

    remote->transfer = NULL;
    call->wake_at = AGENT_CLOCK_NEVER;
    if (remote->error.status != 0) {
        end_failed(call);
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
        end_incomplete(call, reply);
    }
    else {
        end_refused(call, reply);
    }
    /* The call is over, or waits for its next attempt. */
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
    agent_buffer_init(&remote->reply, remote->pool);
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
    request.run = call->transfers;
    request.host = runner_host_read(remote->url, remote->pool);
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

/* In a scratch pool: only the text of the body lives as long as the call. */
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
    if (runner_http_is_waiting(remote->transfer)
        || call->is_full(call->baton)) {
        /* The request is not sent yet, or the answer is not read. */
        restart_timer(call);
        return;
    }
    runner_http_cancel(remote->transfer);
    remote->transfer = NULL;
    fail_call(call, RUNNER_MODEL_ERROR_TIMEOUT,
              apr_psprintf(call->pool, "%" APR_TIME_T_FMT " ms",
                           apr_time_as_msec(call->model->timeout)));
}

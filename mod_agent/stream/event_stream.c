/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of an event stream; see event_stream.h.
 *
 * SDKs treat a clean end of the response as the end of the run, and reconnect
 * after any other end. So a stream that cannot be completed is aborted.
 */
#include "event_stream.h"

#include <string.h>

#include <apr_strings.h>

#include "../http/body.h"
#include "../http/problem.h"
#include "../http/requester.h"
#include "../http/response.h"
#include "../model/values.h"
#include "../wait/park.h"
#include "disconnect.h"
#include "invalid_key.h"
#include "sse.h"

apr_status_t agent_event_stream_begin(agent_event_stream_t *stream)
{
    if (stream->begun) {
        return APR_SUCCESS;
    }
    stream->begun = true;
    return agent_sse_begin(stream->call);
}

apr_status_t agent_event_stream_page_add(agent_event_page_t *page,
                                         agent_call_t *call, const char *id,
                                         const char *event, const char *data,
                                         const char *cursor, apr_pool_t *pool)
{
    const char *mark = cursor != NULL ? strchr(data, AGENT_VALUES_MARK) : NULL;

    if (cursor == NULL) {
        agent_sse_add(page->texts, id, event, data, pool);
        return APR_SUCCESS;
    }
    if (mark == NULL || page->cursor != NULL
        || strlen(cursor) >= AGENT_VALUES_CURSOR_SIZE) {
        return agent_error_set(&call->err, AGENT_E_INTERNAL, NULL,
                               "a function returned an invalid cursor, or no "
                               "mark for the values",
                               call->pool);
    }
    agent_sse_add_split(page->texts, id, event,
                        apr_pstrmemdup(pool, data, (apr_size_t)(mark - data)),
                        mark + 1, pool);
    page->cursor = cursor;
    page->before = page->texts->nelts - 1;
    return APR_SUCCESS;
}

static apr_status_t read_part(const char **part, const char **next,
                              agent_call_t *call, const void *ref,
                              const char *cursor, apr_size_t bytes,
                              apr_pool_t *pool)
{
    apr_status_t rv = agent_values_read(part, next, call->child->turn_db, ref,
                                        cursor, bytes, &call->err, pool);

    if (rv == APR_SUCCESS) {
        *part = agent_sse_one_line(*part, pool);
    }
    return rv;
}

static void prepare_parts(agent_event_stream_t *stream,
                          const agent_event_page_t *page)
{
    apr_array_header_t head = *page->texts;
    apr_array_header_t tail = *page->texts;
    agent_large_source_t source = {.read = read_part,
                                   .baton = &stream->call->ref,
                                   .cursor = page->cursor,
                                   .begun = true};

    head.nelts = page->before;
    tail.nelts -= page->before;
    tail.elts += page->before * tail.elt_size;
    apr_pool_create(&stream->parts_pool, stream->call->pool);
    source.head = apr_array_pstrcat(stream->parts_pool, &head, 0);
    source.tail = apr_array_pstrcat(stream->parts_pool, &tail, 0);
    stream->parts = agent_large_values_make(stream->call, &source,
                                            stream->parts_pool);
}

/* Returns as poll() does, but APR_SUCCESS also for a part that is not the last
 * one. */
static apr_status_t send_part(agent_event_stream_t *stream, apr_pool_t *scratch)
{
    apr_status_t rv = agent_large_values_send(stream->parts, scratch);

    if (rv != APR_EOF) {
        return rv == APR_EAGAIN ? APR_SUCCESS : rv;
    }
    stream->parts = NULL;
    apr_pool_destroy(stream->parts_pool);
    return APR_SUCCESS;
}

apr_status_t agent_event_stream_send(agent_event_stream_t *stream,
                                     const agent_event_page_t *page,
                                     apr_pool_t *scratch)
{
    if (page->cursor == NULL) {
        return agent_sse_send(stream->call, page->texts, scratch);
    }
    prepare_parts(stream, page);
    /* The next turn tries again to read a part, and handles an error. */
    return send_part(stream, scratch) == APR_ECONNABORTED ? APR_ECONNABORTED
                                                          : APR_SUCCESS;
}

/* A run or thread that was rolled back or deleted ends the stream, unless
 * events before that are unsent. */
static bool is_end(const agent_event_stream_t *stream)
{
    const agent_call_t *call = stream->call;

    return !stream->has_more
        && (call->err->id == AGENT_E_RUN_NOT_FOUND
            || call->err->id == AGENT_E_THREAD_NOT_FOUND);
}

static agent_turn_t fail(const agent_event_stream_t *stream)
{
    agent_call_t *call = stream->call;

    if (!stream->begun) {
        (void)!agent_problem_send(call);
    }
    else if (!is_end(stream)) {
        agent_problem_log(call);
        agent_response_abort(call);
    }
    return AGENT_TURN_DONE;
}

/* After a poll that failed. */
static agent_turn_t retry(const agent_event_stream_t *stream)
{
    const agent_call_t *call = stream->call;

    if (!stream->begun
        || (stream->parts != NULL
            && agent_large_values_has_exhausted_retries(stream->parts))
        || agent_error_http(call->err->id) != HTTP_SERVICE_UNAVAILABLE) {
        return fail(stream);
    }
    /* The stream resumes at its cursor when the database is available again. */
    return agent_turn_after_error(call->err);
}

/* The client has disconnected. */
static agent_turn_t disconnect(const agent_event_stream_t *stream,
                               apr_pool_t *scratch)
{
    agent_disconnect_end(stream->call, stream->cancels, scratch);
    return AGENT_TURN_DONE;
}

/* Ends with 401, or with an error event once the stream has begun; between the
 * parts of an event, where none can be sent, aborts. */
static agent_turn_t end_with_key(const agent_event_stream_t *stream,
                                 apr_pool_t *scratch)
{
    agent_call_t *call = stream->call;

    if (!stream->begun || stream->parts != NULL) {
        return agent_invalid_key_respond(call, stream->begun);
    }
    agent_invalid_key_set(call);
    agent_problem_log(call);
    agent_response_write(
        call,
        agent_sse_event(NULL, "error", agent_problem_object(call->err, scratch),
                        scratch));
    return AGENT_TURN_DONE;
}

/* Sends the updates; polls when there are none or some are missing. */
static apr_status_t send_all(agent_event_stream_t *stream,
                             agent_wake_reason_t reason, agent_waiter_t *waiter,
                             apr_pool_t *scratch)
{
    apr_status_t rv = APR_INCOMPLETE;

    if (reason == AGENT_REASON_UPDATES) {
        rv = stream->send_updates(stream, agent_waiter_updates(waiter),
                                  scratch);
    }
    if (rv != APR_INCOMPLETE) {
        return rv;
    }
    rv = stream->poll(stream, scratch);
    if (rv == APR_EAGAIN && stream->parts != NULL) {
        rv = APR_SUCCESS;
    }
    if (rv == APR_SUCCESS || rv == APR_EAGAIN) {
        stream->has_more = rv == APR_SUCCESS;
    }
    if (rv == APR_EAGAIN && stream->send_updates != NULL) {
        agent_waiter_subscribe(waiter, stream->get_cursor(stream));
    }
    return rv;
}

static apr_status_t send_or_heartbeat(agent_event_stream_t *stream,
                                      agent_wake_reason_t reason,
                                      agent_waiter_t *waiter,
                                      apr_pool_t *scratch)
{
    apr_status_t rv;

    /* The parts of an event must not be interrupted. */
    if (stream->parts != NULL) {
        return send_part(stream, scratch);
    }
    rv = reason == AGENT_REASON_HEARTBEAT
        ? APR_EAGAIN
        : send_all(stream, reason, waiter, scratch);
    if (rv != APR_EAGAIN
        || (reason != AGENT_REASON_HEARTBEAT_QUERY
            && reason != AGENT_REASON_HEARTBEAT)) {
        return rv;
    }
    /* One line end: after two the JavaScript SDK reads an unnamed event. */
    return agent_response_write(stream->call, ": heartbeat\n") == APR_SUCCESS
        ? APR_EAGAIN
        : APR_ECONNABORTED;
}

/* HEAD ends with the headers. */
static agent_turn_t continue_with(const agent_event_stream_t *stream,
                                  agent_turn_t turn)
{
    return stream->call->r->header_only ? AGENT_TURN_DONE : turn;
}

static agent_turn_t take_turn(void *baton, agent_wake_reason_t reason,
                              agent_waiter_t *waiter, apr_pool_t *scratch)
{
    agent_event_stream_t *stream = baton;

    if (reason == AGENT_REASON_STOPPING) {
        agent_response_abort(stream->call);
        return AGENT_TURN_DONE;
    }
    if (reason == AGENT_REASON_KEY_INVALID) {
        return end_with_key(stream, scratch);
    }
    if (reason <= AGENT_REASON_HALF_CLOSED) {
        return disconnect(stream, scratch);
    }
    switch (send_or_heartbeat(stream, reason, waiter, scratch)) {
    case APR_SUCCESS:
        return continue_with(stream, AGENT_TURN_MORE);
    case APR_EAGAIN:
        return continue_with(stream, AGENT_TURN_WAIT);
    case APR_EOF:
        return AGENT_TURN_DONE;
    case APR_ECONNABORTED:
        return disconnect(stream, scratch);
    default:
        return retry(stream);
    }
}

int agent_event_stream_run(agent_event_stream_t *stream)
{
    agent_call_t *call = stream->call;
    const agent_parking_t parking = {.registry = call->child->waiters,
                                     .key = stream->key,
                                     .deployment_id = call->ref.deployment_id,
                                     .account = agent_requester_account(call),
                                     .identity = call->identity,
                                     .is_stream = true,
                                     .take_turn = take_turn,
                                     .baton = stream};
    int result = OK;

    agent_body_release(call);
    if (agent_park(&result, call->r, &parking, &call->err) != APR_SUCCESS) {
        fail(stream);
    }
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a run as they are stored: GET .../runs/{run_id}/stream, and
 * POST .../runs/stream, which creates the run first.
 */
#include "handlers.h"

#include <apr_strings.h>

#include "../http/problem.h"
#include "../http/response.h"
#include "../http/stream.h"
#include "../model/run.h"

/* SDKs take silence of three times this for a dead connection. */
#define HEARTBEAT apr_time_from_sec(5)
/* Events of one look; they are sent before the next. */
#define BATCH 200

typedef struct stream_t {
    agent_call_t *call;
    agent_waiter_t *waiter;
    /* Number of the last event sent. */
    apr_int64_t sent;
    /* Cleared before each look, so that a long stream does not grow. */
    apr_pool_t *scratch;
} stream_t;

static apr_status_t send_events(stream_t *stream,
                                const agent_db_result_t *events)
{
    apr_array_header_t *texts = apr_array_make(
        stream->scratch, agent_db_rows(events), sizeof(const char *));

    for (int row = 0; row < agent_db_rows(events); row++) {
        const char *id = agent_db_value(events, row, 0);

        APR_ARRAY_PUSH(texts, const char *) = agent_stream_event(
            id, agent_db_value(events, row, 1), agent_db_value(events, row, 2),
            stream->scratch);
        stream->sent = apr_atoi64(id);
    }
    if (texts->nelts == 0) {
        return APR_SUCCESS;
    }
    return agent_response_write(stream->call,
                                apr_array_pstrcat(stream->scratch, texts, 0));
}

/*
 * Sends what there is. The end is asked for first: whatever was stored when
 * the run ended is then seen by the look that follows. APR_EOF: all is sent.
 */
static apr_status_t send_news(stream_t *stream)
{
    agent_call_t *call = stream->call;
    agent_db_result_t *events;
    apr_int64_t last = -1;
    apr_status_t ended = agent_run_last_event(&last, call->db, call->ids,
                                              &call->err, stream->scratch);
    apr_status_t rv;

    if (ended != APR_SUCCESS && ended != APR_EAGAIN) {
        return ended;
    }
    do {
        rv = agent_run_events(&events, call->db, call->ids, stream->sent, BATCH,
                              &call->err, stream->scratch);
        if (rv == APR_SUCCESS && send_events(stream, events) != APR_SUCCESS) {
            return APR_ECONNABORTED;
        }
    } while (rv == APR_SUCCESS && agent_db_rows(events) == BATCH);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    return ended == APR_SUCCESS ? APR_EOF : APR_EAGAIN;
}

/* The database will come back; the stream goes on where it was. */
static bool is_passing(const stream_t *stream, apr_status_t rv)
{
    return rv == APR_EGENERAL
        && agent_error_http(stream->call->err->id) == HTTP_SERVICE_UNAVAILABLE;
}

static apr_status_t send_until_end(stream_t *stream)
{
    for (;;) {
        apr_status_t rv;
        agent_wait_t woken;

        apr_pool_clear(stream->scratch);
        rv = send_news(stream);
        if (rv != APR_EAGAIN && !is_passing(stream, rv)) {
            return rv;
        }
        woken = agent_wait_for(stream->waiter, HEARTBEAT);
        if (woken == AGENT_WAIT_STOPPING) {
            return APR_ECONNABORTED;
        }
        if (woken == AGENT_WAIT_TIMEOUT
            && agent_response_write(stream->call, ": heartbeat\n\n")
                != APR_SUCCESS) {
            return APR_ECONNABORTED;
        }
    }
}

/* Streams the run of call->ids after an event. The waiter is there before the
 * first look, so no wake-up is lost. */
static int stream_run(agent_call_t *call, apr_int64_t after)
{
    stream_t stream = {.call = call, .sent = after};
    apr_status_t rv;

    apr_pool_create(&stream.scratch, call->pool);
    if (agent_wait_enter(&stream.waiter, call->child->waits, call->ids[2],
                         &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, call->ids[1], call->ids[2], "/stream");
    rv = agent_stream_begin(call);
    if (rv == APR_SUCCESS) {
        rv = send_until_end(&stream);
    }
    agent_wait_leave(stream.waiter);
    if (rv == APR_EGENERAL && call->err->id != AGENT_E_RUN_NOT_FOUND) {
        agent_problem_log(call);
    }
    /* A clean end means "the run has ended" to an SDK; so does a run that was
     * rolled back. Any other end must be seen as a cut. */
    if (rv == APR_EOF
        || (rv == APR_EGENERAL && call->err->id == AGENT_E_RUN_NOT_FOUND)) {
        return OK;
    }
    return agent_response_abort(call);
}

int agent_handle_run_stream(agent_call_t *call)
{
    apr_int64_t after = -1;
    apr_int64_t last;
    apr_status_t rv = agent_stream_cursor(&after, call);

    if (rv == APR_SUCCESS) {
        rv = agent_run_last_event(&last, call->db, call->ids, &call->err,
                                  call->pool);
    }
    if (rv != APR_SUCCESS && rv != APR_EAGAIN) {
        return agent_problem_send(call);
    }
    return stream_run(call, after);
}

int agent_handle_run_create_stream(agent_call_t *call)
{
    const char *body;

    if (agent_create_run(&body, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return stream_run(call, -1);
}

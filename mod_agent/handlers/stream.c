/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a run as they are stored: GET .../runs/{run_id}/stream, and
 * POST .../runs/stream, which creates the run first.
 */
#include "handlers.h"

#include <string.h>

#include <apr_strings.h>

#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../http/stream.h"
#include "../model/run.h"
#include "../model/schema.h"
#include "../wait/park.h"
#include "abandon.h"

/* Events of one turn. */
#define BATCH 200

typedef struct stream_t {
    agent_call_t *call;
    /* Number of the last event sent. */
    apr_int64_t sent;
    /* NULL = all that the run was asked for. */
    const char *const *modes;
    bool cancels;
    /* The 200 and its headers are sent. */
    bool begun;
} stream_t;

static apr_status_t begin(stream_t *stream)
{
    if (stream->begun) {
        return APR_SUCCESS;
    }
    stream->begun = true;
    return agent_stream_begin(stream->call);
}

static apr_status_t send_events(stream_t *stream,
                                const agent_db_result_t *events,
                                apr_pool_t *scratch)
{
    int rows = agent_db_rows(events);
    apr_array_header_t *texts = apr_array_make(scratch, rows,
                                               sizeof(const char *));
    bool in_gap = false;

    for (int row = 0; row < rows; row++) {
        const char *id = agent_db_value(events, row, AGENT_RUN_EVENT_SEQ);
        const char *event = agent_db_value(events, row, AGENT_RUN_EVENT_NAME);

        stream->sent = apr_atoi64(id);
        if (event == NULL) {
            continue;
        }
        /* The state that stands for lost events was not asked for by mode. */
        in_gap = in_gap || strcmp(event, "gap") == 0;
        if (in_gap || agent_stream_shows(stream->modes, event)) {
            APR_ARRAY_PUSH(texts, const char *) = agent_stream_event(
                id, event, agent_db_value(events, row, AGENT_RUN_EVENT_DATA),
                scratch);
        }
    }
    return texts->nelts == 0
        ? APR_SUCCESS
        : agent_response_write(stream->call,
                               apr_array_pstrcat(scratch, texts, 0));
}

/* What the last row of a look says of the next one. */
static apr_status_t read_outlook(const agent_db_result_t *events)
{
    int last = agent_db_rows(events) - 1;

    if (last < 0) {
        return APR_EAGAIN;
    }
    if (agent_db_value(events, last, AGENT_RUN_EVENT_STATUS) != NULL) {
        return APR_EOF;
    }
    return *agent_db_value(events, last, AGENT_RUN_EVENT_MORE) == 't'
        ? APR_SUCCESS
        : APR_EAGAIN;
}

/* Sends what there is. APR_SUCCESS: there is more; APR_EAGAIN: there may be
 * later; APR_EOF: all is sent. */
static apr_status_t send_news(stream_t *stream, apr_pool_t *scratch)
{
    agent_call_t *call = stream->call;
    agent_db_result_t *events;
    apr_status_t rv = agent_run_events(&events, call->db, call->ids,
                                       stream->sent, BATCH, NULL, &call->err,
                                       scratch);

    if (rv == APR_SUCCESS) {
        rv = begin(stream);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (send_events(stream, events, scratch) != APR_SUCCESS) {
        return APR_ECONNABORTED;
    }
    return read_outlook(events);
}

/* A clean end means "the run has ended" to an SDK; so does a run that was
 * rolled back. Any other end must be seen as a cut. */
static agent_turn_t fail(const stream_t *stream)
{
    agent_call_t *call = stream->call;

    if (!stream->begun) {
        agent_problem_send(call);
        return AGENT_TURN_DONE;
    }
    if (call->err->id != AGENT_E_RUN_NOT_FOUND) {
        agent_problem_log(call);
        agent_response_abort(call);
    }
    return AGENT_TURN_DONE;
}

/* After a look that found nothing more: the next turn. */
static agent_turn_t go_on(const stream_t *stream, apr_status_t rv)
{
    const agent_call_t *call = stream->call;

    if (rv == APR_EAGAIN) {
        return AGENT_TURN_WAIT;
    }
    /* The pool was already waited for. */
    if (stream->begun && call->err->id == AGENT_E_POOL_EXHAUSTED) {
        return AGENT_TURN_MORE;
    }
    /* The database will come back; the stream goes on where it was. */
    return stream->begun
            && agent_error_http(call->err->id) == HTTP_SERVICE_UNAVAILABLE
        ? AGENT_TURN_WAIT
        : fail(stream);
}

static agent_turn_t give_up(const stream_t *stream, apr_pool_t *scratch)
{
    if (stream->cancels) {
        agent_abandon_run(stream->call, scratch);
    }
    agent_response_abort(stream->call);
    return AGENT_TURN_DONE;
}

static agent_turn_t take_turn(void *baton, agent_wait_t why,
                              apr_pool_t *scratch)
{
    stream_t *stream = baton;
    apr_status_t rv = APR_ECONNABORTED;

    if (why == AGENT_WAIT_STOPPING) {
        agent_response_abort(stream->call);
        return AGENT_TURN_DONE;
    }
    if (why != AGENT_WAIT_GONE) {
        rv = send_news(stream, scratch);
    }
    if (rv == APR_EAGAIN && why == AGENT_WAIT_HEARTBEAT) {
        /* One line end: after a second one the JavaScript SDK sees an event
         * without a name. */
        rv = agent_response_write(stream->call, ": heartbeat\n");
        rv = rv == APR_SUCCESS ? APR_EAGAIN : APR_ECONNABORTED;
    }
    switch (rv) {
    case APR_SUCCESS:
        return AGENT_TURN_MORE;
    case APR_EOF:
        return AGENT_TURN_DONE;
    case APR_ECONNABORTED:
        return give_up(stream, scratch);
    default:
        return go_on(stream, rv);
    }
}

/* Streams the run of call->ids. */
static int start(stream_t *stream)
{
    agent_call_t *call = stream->call;
    const agent_parking_t parking = {.waits = call->child->waits,
                                     .key = call->ids[2],
                                     .is_stream = true,
                                     .take_turn = take_turn,
                                     .baton = stream};
    int result;

    if (agent_park(&result, call->r, &parking, &call->err) != APR_SUCCESS) {
        fail(stream);
        return OK;
    }
    return result;
}

static stream_t *make_stream(agent_call_t *call)
{
    stream_t *stream = apr_pcalloc(call->pool, sizeof(*stream));

    stream->call = call;
    stream->sent = -1;
    return stream;
}

static int stream_existing(agent_call_t *call)
{
    stream_t *stream = make_stream(call);

    if (agent_stream_cursor(&stream->sent, call) != APR_SUCCESS
        || agent_request_words(&stream->modes, call, "stream_mode",
                               agent_stream_modes)
            != APR_SUCCESS
        || agent_abandon_read(&stream->cancels, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return start(stream);
}

int agent_handle_run_stream(agent_call_t *call)
{
    agent_response_locate(call, call->ids[1], call->ids[2], "/stream");
    return stream_existing(call);
}

int agent_handle_stateless_stream(agent_call_t *call)
{
    if (agent_find_run(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, NULL, call->ids[2], "/stream");
    return stream_existing(call);
}

/* Streams the run that was just created: the headers go out whatever the
 * database does next. */
static int stream_created(agent_call_t *call)
{
    stream_t *stream = make_stream(call);

    stream->cancels = agent_abandon_wanted(call);
    begin(stream);
    return start(stream);
}

int agent_handle_run_create_stream(agent_call_t *call)
{
    const char *body;

    /* No run is made for somebody who could not wait for it. */
    if (agent_park_check(call->r, call->child->waits, &call->err) != APR_SUCCESS
        || agent_create_run(&body, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, call->ids[1], call->ids[2], "/stream");
    return stream_created(call);
}

int agent_handle_stateless_create_stream(agent_call_t *call)
{
    const char *body;

    if (agent_park_check(call->r, call->child->waits, &call->err) != APR_SUCCESS
        || agent_create_stateless_run(&body, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, NULL, call->ids[2], "/stream");
    return stream_created(call);
}

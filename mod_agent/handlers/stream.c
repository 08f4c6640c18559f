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
#include "follow.h"

/* Events of one turn. */
#define BATCH 200

typedef struct stream_t {
    agent_follow_t follow;
    /* Number of the last event sent. */
    apr_int64_t sent;
    /* NULL = all that the run was asked for. */
    const char *const *modes;
} stream_t;

static void add_event(apr_array_header_t *texts, const stream_t *stream,
                      const agent_wait_event_t *event, apr_pool_t *scratch)
{
    if (agent_stream_shows(stream->modes, event->name)) {
        agent_stream_add(texts,
                         apr_psprintf(scratch, "%" APR_INT64_T_FMT, event->seq),
                         event->name, event->data, scratch);
    }
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
        const agent_wait_event_t event = {
            apr_atoi64(id), agent_db_value(events, row, AGENT_RUN_EVENT_NAME),
            agent_db_value(events, row, AGENT_RUN_EVENT_DATA)};

        stream->sent = event.seq;
        if (event.name == NULL) {
            continue;
        }
        /* The state that stands for lost events was not asked for by mode. */
        in_gap = in_gap || strcmp(event.name, "gap") == 0;
        if (in_gap) {
            agent_stream_add(texts, id, event.name, event.data, scratch);
        }
        else {
            add_event(texts, stream, &event, scratch);
        }
    }
    return agent_stream_send(stream->follow.call, texts, scratch);
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

static apr_status_t look_and_send(agent_follow_t *follow, apr_pool_t *scratch)
{
    stream_t *stream = follow->baton;
    agent_call_t *call = follow->call;
    agent_db_result_t *events;
    apr_status_t rv = agent_run_events(&events, call->db, call->ids,
                                       stream->sent, BATCH, NULL, &call->err,
                                       scratch);

    if (rv == APR_SUCCESS) {
        rv = agent_follow_begin(follow);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (send_events(stream, events, scratch) != APR_SUCCESS) {
        return APR_ECONNABORTED;
    }
    return read_outlook(events);
}

/* Those that a look has found since are skipped. */
static apr_status_t send_news(agent_follow_t *follow,
                              const apr_array_header_t *events,
                              apr_pool_t *scratch)
{
    stream_t *stream = follow->baton;
    apr_array_header_t *texts = apr_array_make(scratch, events->nelts,
                                               sizeof(const char *));

    for (int i = 0; i < events->nelts; i++) {
        const agent_wait_event_t *event = &APR_ARRAY_IDX(
            events, i, const agent_wait_event_t);

        if (event->seq > stream->sent + 1) {
            return APR_INCOMPLETE;
        }
        if (event->seq == stream->sent + 1) {
            stream->sent = event->seq;
            add_event(texts, stream, event, scratch);
        }
    }
    return agent_stream_send(stream->follow.call, texts, scratch) == APR_SUCCESS
        ? APR_EAGAIN
        : APR_ECONNABORTED;
}

static apr_int64_t get_cursor(const agent_follow_t *follow)
{
    const stream_t *stream = follow->baton;

    return stream->sent;
}

/* For the run of call->ids. */
static stream_t *make_stream(agent_call_t *call)
{
    stream_t *stream = apr_pcalloc(call->pool, sizeof(*stream));

    stream->follow.call = call;
    stream->follow.key = call->ids[2];
    stream->follow.send = look_and_send;
    stream->follow.send_news = send_news;
    stream->follow.get_cursor = get_cursor;
    stream->follow.baton = stream;
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
        || agent_abandon_read(&stream->follow.cancels, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_follow(&stream->follow);
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

    stream->follow.cancels = agent_abandon_wanted(call);
    agent_follow_begin(&stream->follow);
    return agent_follow(&stream->follow);
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

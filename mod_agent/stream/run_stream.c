/* SPDX-License-Identifier: Apache-2.0 */
/* Streams the events of a run as they are stored; see run_stream.h. */
#include "run_stream.h"

#include <string.h>

#include <apr_strings.h>

#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/run.h"
#include "../model/schema.h"
#include "../wait/waiter.h"
#include "disconnect.h"
#include "event_stream.h"
#include "sse.h"

typedef struct stream_t {
    agent_event_stream_t base;
    /* Number of the last event sent. */
    apr_int64_t sent;
    /* Names of the events to send; NULL: all. */
    const char *const *modes;
    const char *const *namespaces;
} stream_t;

static bool is_wanted(const stream_t *stream, const char *event)
{
    return agent_sse_is_wanted(stream->modes, stream->namespaces, event);
}

/* Makes a page of the events that the client asked for; *last: the number of
 * the last row. */
static apr_status_t make_page(agent_event_page_t *page, apr_int64_t *last,
                              const stream_t *stream,
                              const agent_db_result_t *events,
                              apr_pool_t *scratch)
{
    bool in_gap = false;

    for (int row = 0; row < agent_db_rows(events); row++) {
        const char *id = agent_db_value(events, row, AGENT_RUN_EVENT_SEQ);
        const char *name = agent_db_value(events, row, AGENT_RUN_EVENT_NAME);
        apr_status_t rv = APR_SUCCESS;

        *last = apr_atoi64(id);
        if (name == NULL) {
            continue;
        }
        /* The events in place of expired ones are sent in any mode. */
        in_gap = in_gap || strcmp(name, "gap") == 0;
        if (in_gap || is_wanted(stream, name)) {
            rv = agent_event_stream_page_add(
                page, stream->base.call, id, name,
                agent_db_value(events, row, AGENT_RUN_EVENT_DATA),
                agent_db_value(events, row, AGENT_RUN_EVENT_CURSOR), scratch);
        }
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

/* The last row's status and `more` as the result of a poll. After values in
 * parts the end is read again. */
static apr_status_t read_progress(const agent_db_result_t *events,
                                  const agent_event_page_t *page)
{
    int last = agent_db_rows(events) - 1;

    if (page->cursor != NULL) {
        return APR_SUCCESS;
    }

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

static apr_status_t poll_events(agent_event_stream_t *base, apr_pool_t *scratch)
{
    stream_t *stream = base->baton;
    agent_call_t *call = base->call;
    agent_event_page_t page = {
        .texts = apr_array_make(scratch, 16, sizeof(const char *))};
    apr_int64_t last = stream->sent;
    agent_db_result_t *events;
    apr_status_t rv = agent_run_read_events(
        &events, call->child->turn_db, &call->ref, stream->sent,
        AGENT_EVENT_STREAM_BATCH, NULL, &call->err, scratch);

    if (rv == APR_SUCCESS) {
        rv = agent_event_stream_begin(base);
    }
    if (rv == APR_SUCCESS) {
        rv = make_page(&page, &last, stream, events, scratch);
    }
    if (rv == APR_SUCCESS) {
        rv = agent_event_stream_send(base, &page, scratch);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    stream->sent = last;
    return read_progress(events, &page);
}

static void add_event(apr_array_header_t *texts, const stream_t *stream,
                      const agent_run_event_t *event, apr_pool_t *scratch)
{
    if (is_wanted(stream, event->name)) {
        agent_sse_add(texts,
                      apr_psprintf(scratch, "%" APR_INT64_T_FMT, event->seq),
                      event->name, event->data, scratch);
    }
}

/* Skips events that a poll has sent since they were read. */
static apr_status_t send_updates(agent_event_stream_t *base,
                                 const apr_array_header_t *events,
                                 apr_pool_t *scratch)
{
    stream_t *stream = base->baton;
    apr_array_header_t *texts = apr_array_make(scratch, events->nelts,
                                               sizeof(const char *));

    for (int i = 0; i < events->nelts; i++) {
        const agent_run_event_t *event = &APR_ARRAY_IDX(
            events, i, const agent_run_event_t);

        if (event->seq > stream->sent + 1) {
            return APR_INCOMPLETE;
        }
        if (event->seq == stream->sent + 1) {
            stream->sent = event->seq;
            add_event(texts, stream, event, scratch);
        }
    }
    return agent_sse_send(stream->base.call, texts, scratch) == APR_SUCCESS
        ? APR_EAGAIN
        : APR_ECONNABORTED;
}

static apr_int64_t get_cursor(const agent_event_stream_t *base)
{
    const stream_t *stream = base->baton;

    return stream->sent;
}

/* For the run call->ref. */
static stream_t *make_stream(agent_call_t *call)
{
    stream_t *stream = apr_pcalloc(call->pool, sizeof(*stream));

    stream->base.call = call;
    stream->base.key = call->ref.run_id;
    stream->base.poll = poll_events;
    stream->base.send_updates = send_updates;
    stream->base.get_cursor = get_cursor;
    stream->base.baton = stream;
    stream->sent = -1;
    agent_request_texts(&stream->namespaces, call, "namespace");
    return stream;
}

/* A client that sends checkpoint_id already has the values of that checkpoint:
 * without Last-Event-ID the stream begins after them. */
static apr_status_t skip_checkpoint(stream_t *stream)
{
    agent_call_t *call = stream->base.call;
    const char *checkpoint_id = NULL;
    apr_status_t rv = agent_request_uuid(&checkpoint_id, call, "checkpoint_id");

    return rv != APR_SUCCESS || checkpoint_id == NULL || stream->sent >= 0
        ? rv
        : agent_run_find_checkpoint_event(&stream->sent, call->db, &call->ref,
                                          checkpoint_id, &call->err,
                                          call->pool);
}

int agent_run_stream(agent_call_t *call)
{
    stream_t *stream = make_stream(call);

    if (agent_sse_read_cursor(&stream->sent, call) != APR_SUCCESS
        || skip_checkpoint(stream) != APR_SUCCESS
        || agent_request_words(&stream->modes, call, "stream_mode",
                               agent_stream_modes)
            != APR_SUCCESS
        || agent_disconnect_read_query(&stream->base.cancels, call)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_event_stream_run(&stream->base);
}

int agent_run_stream_created(agent_call_t *call)
{
    stream_t *stream = make_stream(call);

    stream->base.cancels = agent_disconnect_read_body(call);
    /* The run exists: the response begins now, so that an error of the first
     * poll does not replace it. */
    agent_event_stream_begin(&stream->base);
    return agent_event_stream_run(&stream->base);
}

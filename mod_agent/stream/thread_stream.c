/* SPDX-License-Identifier: Apache-2.0 */
/* Streams the events of all runs of a thread; see thread_stream.h. */
#include "thread_stream.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/json.h"
#include "../core/uuid.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/schema.h"
#include "../model/thread.h"
#include "event_stream.h"
#include "sse.h"

/* Bytes that end a turn: of events, and of states that are read with them. */
#define TURN_BYTES (128 * 1024)

typedef struct thread_stream_t {
    agent_event_stream_t base;
    agent_thread_cursor_t cursor;
    /* The run whose events are being sent; "" for none. */
    char run_id[AGENT_UUID_SIZE];
    /* From stream_mode: names of the runs' events, NULL for all; whether ends
     * and states are sent. */
    const char *const *names;
    bool sends_ends;
    bool sends_states;
} thread_stream_t;

static bool has_mode(const char *const *modes, const char *mode)
{
    for (; *modes != NULL; modes++) {
        if (strcmp(*modes, mode) == 0) {
            return true;
        }
    }
    return false;
}

static void choose_modes(thread_stream_t *stream, const char *const *modes)
{
    static const char *const none[] = {NULL};
    static const char *const starts[] = {"metadata", NULL};
    bool all = modes == NULL || has_mode(modes, "run_modes");

    stream->sends_ends = all || has_mode(modes, "lifecycle");
    stream->sends_states = modes != NULL && has_mode(modes, "state_update");
    if (!all) {
        stream->names = stream->sends_ends ? starts : none;
    }
}

static const char *print_end(const thread_stream_t *stream, const char *status,
                             apr_pool_t *pool)
{
    const char *run_id = *stream->run_id != '\0' ? stream->run_id : NULL;

    return apr_pstrcat(pool, "{\"run_id\":", agent_json_quote(run_id, pool),
                       ",\"thread_id\":\"", stream->base.call->ref.thread_id,
                       "\",\"status\":\"", status, "\"}", NULL);
}

/* The state after a run, as GET .../state returns it. APR_INCOMPLETE: the page
 * has other values that are sent in parts. */
static apr_status_t add_state(agent_event_page_t *page,
                              const thread_stream_t *stream, const char *id,
                              const char *checkpoint_id, apr_pool_t *scratch)
{
    agent_call_t *call = stream->base.call;
    const char *state;
    const char *cursor;
    apr_status_t rv = agent_thread_get_state(
        &state, &cursor, call->child->turn_db, &call->ref, checkpoint_id, NULL,
        &call->err, scratch);

    if (rv == APR_SUCCESS) {
        return cursor != NULL && page->cursor != NULL
            ? APR_INCOMPLETE
            : agent_event_stream_page_add(page, call, id, "state_update", state,
                                          cursor, scratch);
    }
    /* Rolled back since. */
    return call->err->id == AGENT_E_CHECKPOINT_NOT_FOUND ? APR_SUCCESS : rv;
}

static apr_status_t add_end(agent_event_page_t *page,
                            const thread_stream_t *stream,
                            const agent_db_result_t *events, int row,
                            apr_pool_t *scratch)
{
    const char *id = agent_db_value(events, row, AGENT_THREAD_EVENT_ID);
    const char *checkpoint_id = agent_db_value(events, row,
                                               AGENT_THREAD_EVENT_CHECKPOINT);
    apr_status_t rv = APR_SUCCESS;

    /* Only the last event of a row carries its id: a client that reconnects
     * after the first gets both again. */
    if (stream->sends_states && checkpoint_id != NULL) {
        rv = add_state(page, stream, stream->sends_ends ? NULL : id,
                       checkpoint_id, scratch);
    }
    if (rv == APR_SUCCESS && stream->sends_ends) {
        agent_sse_add(
            page->texts, id, "run_done",
            print_end(stream,
                      agent_db_value(events, row, AGENT_THREAD_EVENT_STATUS),
                      scratch),
            scratch);
    }
    return rv;
}

static apr_status_t add_row(agent_event_page_t *page, thread_stream_t *stream,
                            const agent_db_result_t *events, int row,
                            apr_pool_t *scratch)
{
    const char *id = agent_db_value(events, row, AGENT_THREAD_EVENT_ID);
    const char *run_id = agent_db_value(events, row, AGENT_THREAD_EVENT_RUN);
    const char *name = agent_db_value(events, row, AGENT_THREAD_EVENT_NAME);
    const char *data = agent_db_value(events, row, AGENT_THREAD_EVENT_DATA);
    apr_status_t rv = APR_SUCCESS;

    if (run_id != NULL) {
        apr_cpystrn(stream->run_id, run_id, sizeof(stream->run_id));
    }
    if (name != NULL) {
        rv = agent_event_stream_page_add(
            page, stream->base.call, id, name, data,
            agent_db_value(events, row, AGENT_THREAD_EVENT_CURSOR), scratch);
    }
    else if (agent_db_value(events, row, AGENT_THREAD_EVENT_STATUS) != NULL) {
        rv = add_end(page, stream, events, row, scratch);
    }
    return rv;
}

static apr_size_t count_bytes(const apr_array_header_t *texts, int from)
{
    apr_size_t bytes = 0;

    for (int i = from; i < texts->nelts; i++) {
        bytes += strlen(APR_ARRAY_IDX(texts, i, const char *));
    }
    return bytes;
}

/* Whether the stream can continue after a row: of the events in place of
 * dropped ones only the last moves the cursor. */
static bool moves_cursor(const thread_stream_t *stream,
                         const agent_db_result_t *events, int row)
{
    const char *id = agent_db_value(events, row, AGENT_THREAD_EVENT_ID);
    agent_thread_cursor_t cursor;

    if (row > 0) {
        return strcmp(id,
                      agent_db_value(events, row - 1, AGENT_THREAD_EVENT_ID))
            != 0;
    }
    return !agent_thread_cursor_read(&cursor, id)
        || cursor.run != stream->cursor.run || cursor.seq != stream->cursor.seq;
}

/* Adds the events of the first rows up to TURN_BYTES: states can be of any
 * size. *rows: the number of rows added. */
static apr_status_t add_rows(agent_event_page_t *page, int *rows,
                             thread_stream_t *stream,
                             const agent_db_result_t *events,
                             apr_pool_t *scratch)
{
    apr_size_t bytes = 0;

    for (*rows = 0; *rows < agent_db_rows(events)
         && (bytes < TURN_BYTES || !moves_cursor(stream, events, *rows - 1));
         ++*rows) {
        int texts_before = page->texts->nelts;
        apr_status_t rv = add_row(page, stream, events, *rows, scratch);

        if (rv != APR_SUCCESS) {
            return rv == APR_INCOMPLETE ? APR_SUCCESS : rv;
        }
        bytes += count_bytes(page->texts, texts_before);
    }
    return APR_SUCCESS;
}

/* Sends the first rows and moves the cursor after them. */
static apr_status_t send_rows(int *rows, thread_stream_t *stream,
                              const agent_db_result_t *events,
                              apr_pool_t *scratch)
{
    agent_event_page_t page = {
        .texts = apr_array_make(scratch, agent_db_rows(events) + 1,
                                sizeof(const char *))};
    apr_status_t rv = add_rows(&page, rows, stream, events, scratch);

    if (rv == APR_SUCCESS) {
        rv = agent_event_stream_send(&stream->base, &page, scratch);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (*rows > 0) {
        agent_thread_cursor_read(
            &stream->cursor,
            agent_db_value(events, *rows - 1, AGENT_THREAD_EVENT_ID));
    }
    return APR_SUCCESS;
}

static apr_status_t poll_events(agent_event_stream_t *base, apr_pool_t *scratch)
{
    thread_stream_t *stream = base->baton;
    agent_call_t *call = base->call;
    agent_db_result_t *events;
    int sent = 0;
    apr_status_t rv = agent_thread_read_events(
        &events, call->child->turn_db, &call->ref, &stream->cursor,
        AGENT_EVENT_STREAM_BATCH, stream->names, &call->err, scratch);

    if (rv == APR_SUCCESS) {
        rv = agent_event_stream_begin(base);
    }
    if (rv == APR_SUCCESS) {
        rv = send_rows(&sent, stream, events, scratch);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (sent < agent_db_rows(events)) {
        return APR_SUCCESS;
    }
    return sent > 0
            && *agent_db_value(events, sent - 1, AGENT_THREAD_EVENT_MORE) == 't'
        ? APR_SUCCESS
        : APR_EAGAIN;
}

/* Without Last-Event-ID the stream starts after the last event. While a run
 * executes it starts with that run's metadata, as every run does. */
static apr_status_t find_start(thread_stream_t *stream)
{
    agent_call_t *call = stream->base.call;
    const char *run_id;
    apr_status_t rv = agent_thread_find_end(&stream->cursor, &run_id,
                                            call->child->turn_db, &call->ref,
                                            &call->err, call->pool);

    if (rv != APR_SUCCESS || run_id == NULL) {
        return rv;
    }
    apr_cpystrn(stream->run_id, run_id, sizeof(stream->run_id));
    if (!stream->sends_ends) {
        return rv;
    }
    agent_event_stream_begin(&stream->base);
    /* The first turn notices a client that has disconnected. */
    agent_response_write(
        call,
        agent_sse_event(
            NULL, "metadata",
            apr_pstrcat(call->pool, "{\"run_id\":\"", run_id, "\"}", NULL),
            call->pool));
    return APR_SUCCESS;
}

static apr_status_t read_start(thread_stream_t *stream)
{
    agent_call_t *call = stream->base.call;
    const char *const *modes = NULL;
    const char *after;

    if (agent_request_words(&modes, call, "stream_mode",
                            agent_thread_stream_modes)
            != APR_SUCCESS
        || agent_request_words(&modes, call, "stream_modes",
                               agent_thread_stream_modes)
            != APR_SUCCESS
        || agent_request_identifier(&after, call, "Last-Event-ID", 40)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    choose_modes(stream, modes);
    if (after == NULL) {
        return find_start(stream);
    }
    if (!agent_thread_cursor_read(&stream->cursor, after)) {
        return agent_error_set(&call->err, AGENT_E_BAD_REQUEST,
                               "Header Last-Event-ID: expected the id of an "
                               "event of this stream, or - for the oldest.",
                               NULL, call->pool);
    }
    return APR_SUCCESS;
}

int agent_thread_stream(agent_call_t *call)
{
    thread_stream_t *stream = apr_pcalloc(call->pool, sizeof(*stream));

    stream->base.call = call;
    stream->base.key = call->ref.thread_id;
    stream->base.poll = poll_events;
    stream->base.baton = stream;
    if (read_start(stream) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_event_stream_run(&stream->base);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /threads/{thread_id}/stream: the events of all runs of a thread, those to
 * come included, until the client leaves or the thread is deleted.
 */
#include "handlers.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/json.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../http/stream.h"
#include "../model/schema.h"
#include "../model/thread.h"
#include "follow.h"

/* Events of one turn. */
#define BATCH 200
/* With states, which come on top of what a look has read. */
#define TURN_BYTES (128 * 1024)

typedef struct thread_stream_t {
    agent_follow_t follow;
    agent_thread_cursor_t cursor;
    /* The run whose events are being sent; NULL = none. */
    char run_id[AGENT_UUID_SIZE];
    /* By the modes that were asked for: */
    const char *const *names; /* of run events; NULL = all */
    bool tells_ends;
    bool tells_states;
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

    stream->tells_ends = all || has_mode(modes, "lifecycle");
    stream->tells_states = modes != NULL && has_mode(modes, "state_update");
    if (!all) {
        stream->names = stream->tells_ends ? starts : none;
    }
}

static const char *print_end(const thread_stream_t *stream, const char *status,
                             apr_pool_t *pool)
{
    const char *run_id = *stream->run_id != '\0' ? stream->run_id : NULL;

    return apr_pstrcat(pool, "{\"run_id\":", agent_json_quote(run_id, pool),
                       ",\"thread_id\":\"", stream->follow.call->ids[1],
                       "\",\"status\":\"", status, "\"}", NULL);
}

/* The state that a run has left, as GET .../state shows it. */
static apr_status_t add_state(apr_array_header_t *texts,
                              const thread_stream_t *stream, const char *id,
                              const char *checkpoint_id, apr_pool_t *scratch)
{
    agent_call_t *call = stream->follow.call;
    const char *state;
    apr_status_t rv = agent_thread_state(&state, call->db, call->account_id,
                                         call->ids[1], checkpoint_id,
                                         &call->err, scratch);

    if (rv == APR_SUCCESS) {
        agent_stream_add(texts, id, "state_update", state, scratch);
        return APR_SUCCESS;
    }
    /* Rolled back since: there is nothing to show. */
    return call->err->id == AGENT_E_CHECKPOINT_NOT_FOUND ? APR_SUCCESS : rv;
}

static apr_status_t add_end(apr_array_header_t *texts,
                            const thread_stream_t *stream,
                            const agent_db_result_t *events, int row,
                            apr_pool_t *scratch)
{
    const char *id = agent_db_value(events, row, AGENT_THREAD_EVENT_ID);
    const char *checkpoint_id = agent_db_value(events, row,
                                               AGENT_THREAD_EVENT_CHECKPOINT);
    apr_status_t rv = APR_SUCCESS;

    /* Only the last event of a row may carry its id: who is cut between them
     * gets both again. */
    if (stream->tells_states && checkpoint_id != NULL) {
        rv = add_state(texts, stream, stream->tells_ends ? NULL : id,
                       checkpoint_id, scratch);
    }
    if (rv == APR_SUCCESS && stream->tells_ends) {
        agent_stream_add(
            texts, id, "run_done",
            print_end(stream,
                      agent_db_value(events, row, AGENT_THREAD_EVENT_STATUS),
                      scratch),
            scratch);
    }
    return rv;
}

static apr_status_t add_row(apr_array_header_t *texts, thread_stream_t *stream,
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
        agent_stream_add(texts, id, name, data, scratch);
    }
    else if (agent_db_value(events, row, AGENT_THREAD_EVENT_STATUS) != NULL) {
        rv = add_end(texts, stream, events, row, scratch);
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

/* The events of the first rows, as many as one turn may write: states can be
 * of any size. *rows is how many these are. */
static apr_status_t add_rows(apr_array_header_t *texts, int *rows,
                             thread_stream_t *stream,
                             const agent_db_result_t *events,
                             apr_pool_t *scratch)
{
    apr_size_t bytes = 0;

    for (*rows = 0; *rows < agent_db_rows(events) && bytes < TURN_BYTES;
         ++*rows) {
        int texts_before = texts->nelts;
        apr_status_t rv = add_row(texts, stream, events, *rows, scratch);

        if (rv != APR_SUCCESS) {
            return rv;
        }
        bytes += count_bytes(texts, texts_before);
    }
    return APR_SUCCESS;
}

/* Sends rows, and moves the cursor behind them. */
static apr_status_t send_rows(int *rows, thread_stream_t *stream,
                              const agent_db_result_t *events,
                              apr_pool_t *scratch)
{
    apr_array_header_t *texts = apr_array_make(
        scratch, agent_db_rows(events) + 1, sizeof(const char *));
    apr_status_t rv = add_rows(texts, rows, stream, events, scratch);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (agent_stream_send(stream->follow.call, texts, scratch) != APR_SUCCESS) {
        return APR_ECONNABORTED;
    }
    if (*rows > 0) {
        agent_thread_cursor_read(
            &stream->cursor,
            agent_db_value(events, *rows - 1, AGENT_THREAD_EVENT_ID));
    }
    return APR_SUCCESS;
}

static apr_status_t look_and_send(agent_follow_t *follow, apr_pool_t *scratch)
{
    thread_stream_t *stream = follow->baton;
    agent_call_t *call = follow->call;
    agent_db_result_t *events;
    int sent = 0;
    apr_status_t rv = agent_thread_events(&events, call->db, call->ids,
                                          &stream->cursor, BATCH, stream->names,
                                          &call->err, scratch);

    if (rv == APR_SUCCESS) {
        rv = agent_follow_begin(follow);
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

/* Without Last-Event-ID a stream shows what is new. In the midst of a run it
 * begins with that run's metadata, as every run does. */
static apr_status_t find_start(thread_stream_t *stream)
{
    agent_call_t *call = stream->follow.call;
    const char *run_id;
    apr_status_t rv = agent_thread_end(&stream->cursor, &run_id, call->db,
                                       call->account_id, call->ids[1],
                                       &call->err, call->pool);

    if (rv != APR_SUCCESS || run_id == NULL) {
        return rv;
    }
    apr_cpystrn(stream->run_id, run_id, sizeof(stream->run_id));
    if (!stream->tells_ends) {
        return rv;
    }
    agent_follow_begin(&stream->follow);
    /* A client that is gone is seen by the first turn. */
    agent_response_write(
        call,
        agent_stream_event(
            NULL, "metadata",
            apr_pstrcat(call->pool, "{\"run_id\":\"", run_id, "\"}", NULL),
            call->pool));
    return APR_SUCCESS;
}

static apr_status_t read_start(thread_stream_t *stream)
{
    agent_call_t *call = stream->follow.call;
    const char *const *modes = NULL;
    const char *after;

    if (agent_request_words(&modes, call, "stream_mode",
                            agent_thread_stream_modes)
            != APR_SUCCESS
        || agent_request_words(&modes, call, "stream_modes",
                               agent_thread_stream_modes)
            != APR_SUCCESS
        || agent_request_identity(&after, call, "Last-Event-ID", 40)
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

int agent_handle_thread_stream(agent_call_t *call)
{
    thread_stream_t *stream = apr_pcalloc(call->pool, sizeof(*stream));

    stream->follow.call = call;
    stream->follow.key = call->ids[1];
    stream->follow.send = look_and_send;
    stream->follow.baton = stream;
    agent_response_resume(
        call,
        apr_pstrcat(call->pool, "/threads/", call->ids[1], "/stream", NULL));
    if (read_start(stream) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_follow(&stream->follow);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of an event stream: from the first event to the last, across lost
 * connections to the database. The caller supplies the events. */
#ifndef AGENT_STREAM_EVENT_STREAM_H
#define AGENT_STREAM_EVENT_STREAM_H

#include "../http/call.h"
#include "large_values.h"

typedef struct agent_event_stream_t agent_event_stream_t;

/* Events of one query. */
#define AGENT_EVENT_STREAM_BATCH 200

/* Events that are sent together. */
typedef struct agent_event_page_t {
    /* const char *, for agent_sse_send(). */
    apr_array_header_t *texts;
    /* For an event whose values are sent in parts (../model/values.h): cursor
     * of the first part, and number of texts before it; else NULL. */
    const char *cursor;
    int before;
} agent_event_page_t;

/* In the call's pool. */
struct agent_event_stream_t {
    agent_call_t *call;
    /* The id of the run or thread whose changes wake the stream; borrowed. */
    const char *key;
    /*
     * Queries the events after the stream's cursor, sends them and moves the
     * cursor; calls agent_event_stream_begin() after the query and before it
     * sends. Returns APR_SUCCESS: more events can be queried at once;
     * APR_EAGAIN: all events so far are sent; APR_EOF: the stream is complete;
     * APR_ECONNABORTED: the client has disconnected; otherwise call->err is
     * set.
     */
    apr_status_t (*poll)(agent_event_stream_t *stream, apr_pool_t *scratch);
    /*
     * Sends events that were read for many streams together (array of
     * agent_run_event_t) and moves the cursor. Returns APR_EAGAIN,
     * APR_ECONNABORTED, or APR_INCOMPLETE: events between the cursor and these
     * are missing. NULL: only poll() sends.
     */
    apr_status_t (*send_updates)(agent_event_stream_t *stream,
                                 const apr_array_header_t *events,
                                 apr_pool_t *scratch);
    /* The number of the last event sent; set together with send_updates. */
    apr_int64_t (*get_cursor)(const agent_event_stream_t *stream);
    /* For the functions above. */
    void *baton;
    /* Cancels the run of call->ref when the client disconnects. */
    bool cancels;
    /* The headers of the 200 are sent. */
    bool begun;
    /* The last poll returned APR_SUCCESS. */
    bool has_more;
    /* Values that are being sent, in a pool of their own; else NULL. */
    agent_large_values_t *parts;
    apr_pool_t *parts_pool;
};

/* Sends the headers unless they are sent. APR_ECONNABORTED: the client has
 * disconnected. */
apr_status_t agent_event_stream_begin(agent_event_stream_t *stream);

/* Adds an event; id NULL: without an id. cursor: that of its large values, for
 * which data has the mark; NULL: data is complete. At most one event of a page
 * may have a cursor. Error: INTERNAL without the mark, with a second or an
 * invalid cursor. */
apr_status_t agent_event_stream_page_add(agent_event_page_t *page,
                                         agent_call_t *call, const char *id,
                                         const char *event, const char *data,
                                         const char *cursor, apr_pool_t *pool);

/* Sends a page, for poll(); what follows the first part of values is sent by
 * the next turns, before the next poll. APR_ECONNABORTED: the client has
 * disconnected. */
apr_status_t agent_event_stream_send(agent_event_stream_t *stream,
                                     const agent_event_page_t *page,
                                     apr_pool_t *scratch);

/* Streams until the end. Returns what the handler returns to httpd. */
int agent_event_stream_run(agent_event_stream_t *stream);

#endif

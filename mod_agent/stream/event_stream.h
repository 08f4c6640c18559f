/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of an event stream: from the first event to the last, across lost
 * connections to the database. The caller supplies the events. */
#ifndef AGENT_STREAM_EVENT_STREAM_H
#define AGENT_STREAM_EVENT_STREAM_H

#include "../http/call.h"

typedef struct agent_event_stream_t agent_event_stream_t;

/* Events of one query. */
#define AGENT_EVENT_STREAM_BATCH 200

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
    /* Of the three functions above. */
    void *baton;
    /* Cancels the run of call->ref when the client disconnects. */
    bool cancels;
    /* The headers of the 200 are sent. */
    bool begun;
    /* The last poll returned APR_SUCCESS. */
    bool has_more;
};

/* Sends the headers unless they are sent. APR_ECONNABORTED: the client has
 * disconnected. */
apr_status_t agent_event_stream_begin(agent_event_stream_t *stream);

/* Streams until the end. Returns what the handler returns to httpd. */
int agent_event_stream_run(agent_event_stream_t *stream);

#endif

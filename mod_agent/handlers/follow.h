/* SPDX-License-Identifier: Apache-2.0 */
/* Event streams: from the first event to the end, through a database that is
 * lost and comes back. What the events are is the caller's. */
#ifndef AGENT_HANDLERS_FOLLOW_H
#define AGENT_HANDLERS_FOLLOW_H

#include "../http/call.h"

typedef struct agent_follow_t agent_follow_t;

/* In the call's pool. */
struct agent_follow_t {
    agent_call_t *call;
    /* The run or thread whose changes are waited for. */
    const char *key;
    /*
     * Sends what there is after the baton's cursor, and moves it. The first
     * thing it does after a look that succeeded is agent_follow_begin().
     * Returns APR_SUCCESS: there is more; APR_EAGAIN: there may be later;
     * APR_EOF: all is sent; APR_ECONNABORTED: the client is gone; anything
     * else: call->err says why.
     */
    apr_status_t (*send)(agent_follow_t *follow, apr_pool_t *scratch);
    /*
     * Sends events that were brought (of agent_wait_event_t), and moves the
     * cursor; APR_EAGAIN, APR_ECONNABORTED, or APR_INCOMPLETE: events between
     * the cursor and these are missing. NULL: only send() sends.
     */
    apr_status_t (*send_news)(agent_follow_t *follow,
                              const apr_array_header_t *events,
                              apr_pool_t *scratch);
    /* The number of the last event that send() has sent; with send_news. */
    apr_int64_t (*get_cursor)(const agent_follow_t *follow);
    void *baton;
    /* The run of call->ids is cancelled when the client leaves. */
    bool cancels;
    /* The 200 and its headers are sent. */
    bool begun;
    /* The last look has left something to send. */
    bool has_more;
};

/* Sends the headers unless that was done; APR_ECONNABORTED: the client is
 * gone. */
apr_status_t agent_follow_begin(agent_follow_t *follow);

/* Streams; returns what the handler returns to httpd. */
int agent_follow(agent_follow_t *follow);

#endif

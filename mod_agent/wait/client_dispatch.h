/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which requests that wait for their clients get a thread, when many clients
 * send the next part of a body, or read a part of a response, at the same
 * moment.
 *
 * The event MPM gives each readable or writable socket a thread, and closes
 * keep-alive connections while it has none left. So the MPM polls an eventfd
 * for such a request, and a thread of this module the client's socket: the
 * requests are dispatched in the order in which their clients were ready, a few
 * at a time.
 *
 * A wait is used by one thread at a time, the one that has the connection.
 */
#ifndef AGENT_WAIT_CLIENT_DISPATCH_H
#define AGENT_WAIT_CLIENT_DISPATCH_H

#include <apr_pools.h>

/* The dispatch of a child. */
typedef struct agent_client_dispatch_t agent_client_dispatch_t;
/* The wait of a request. */
typedef struct agent_client_wait_t agent_client_wait_t;

/* Creates it in pool, with its thread. most: how many requests may be
 * dispatched at the same time, at least 1. Errors: of epoll, eventfd() and
 * threads. */
apr_status_t agent_client_dispatch_create(agent_client_dispatch_t **out,
                                          int most, apr_pool_t *pool);

/* Creates the wait of a request, in pool. client_fd: the client's socket,
 * borrowed until agent_client_dispatch_end_wait(). Errors: of eventfd() and
 * epoll_ctl(), when descriptors or watches run out. */
apr_status_t agent_client_dispatch_create_wait(
    agent_client_wait_t **out, agent_client_dispatch_t *dispatch, int client_fd,
    apr_pool_t *pool);

/* Returns the eventfd, which becomes readable when the request is dispatched;
 * owned by the wait. */
int agent_client_dispatch_descriptor(const agent_client_wait_t *wait);

/* To be called after the user of the descriptor has closed it. */
void agent_client_dispatch_forget_descriptor(agent_client_wait_t *wait);

/* The event that ends a request's wait. */
typedef enum agent_client_event_t {
    /* The client has sent data, or disconnected. */
    AGENT_CLIENT_SENDS,
    /* The client has read data, or disconnected. */
    AGENT_CLIENT_READS,
    /* No event of the client: its turn has come again, since one turn could not
     * read all that has arrived. */
    AGENT_CLIENT_TURN
} agent_client_event_t;

/* The request has had its turn: the next one is dispatched, and this one after
 * the event. */
void agent_client_dispatch_begin_wait(agent_client_wait_t *wait,
                                      agent_client_event_t event);

/* The request continues without waiting for its client: it leaves the queue, or
 * gives its dispatch slot to the next request. */
void agent_client_dispatch_release(agent_client_wait_t *wait);

/* Ends the wait, in any state; required before pool ends, and may be called
 * twice. */
void agent_client_dispatch_end_wait(agent_client_wait_t *wait);

#endif

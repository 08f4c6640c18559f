/* SPDX-License-Identifier: Apache-2.0 */
/* The parking state of a connection, private to park*.c. */
#ifndef AGENT_WAIT_PARK_PRIVATE_H
#define AGENT_WAIT_PARK_PRIVATE_H

#include "client_dispatch.h"
#include "output.h"
#include "park.h"

typedef struct agent_park_t {
    agent_output_t *output;
    /* process_connection hooks run inside ours. */
    bool nested;
    /* The parked request; NULL = none. */
    request_rec *r;
    agent_parking_t parking;
    agent_waiter_t *waiter;
    bool wants_more;
    /* is_done: the response is complete. is_finalized: its end was passed to
     * the filters. */
    bool is_done;
    bool is_finalized;
    /* The client's descriptor while an eventfd replaces it; else -1. */
    int client_fd;
    /* The wait for the client to send or read; NULL = not needed yet.
     * waits_for_client: its eventfd, not the waiter's, replaces the client's
     * descriptor. */
    agent_client_wait_t *wait;
    bool waits_for_client;
    /* The request whose body is incomplete; NULL = none. */
    request_rec *unread;
    agent_body_read_t reading;
    agent_body_slot_t *slot;
} agent_park_t;

/* Returns the state of the connection; NULL where no connection can park. */
agent_park_t *agent_park_find(const conn_rec *c);

/* Returns the state of the request's connection if the request may park, or
 * NULL. */
agent_park_t *agent_park_find_usable(const request_rec *r);

/* Prepares a child; see agent_park_start(). */
apr_status_t agent_park_client_start(int threads, apr_pool_t *pool);

/* Undo the exchange of descriptors: for further use of the connection, and as a
 * cleanup (of a conn_rec) before its socket is closed. */
void agent_park_restore_client(conn_rec *c, agent_park_t *park);
apr_status_t agent_park_restore_before_close(void *data);

/* Returns the descriptor of the connection's socket. */
int agent_park_descriptor(const conn_rec *c);

/* Give the connection to the MPM until an eventfd is readable, or until it is
 * dispatched after an event of its client. Return what the process_connection
 * hook returns. */
int agent_park_wait_on(conn_rec *c, agent_park_t *park, int eventfd);
int agent_park_wait_for_client(conn_rec *c, agent_park_t *park,
                               agent_client_event_t event);

/* The request no longer waits for its client: another one is dispatched. */
void agent_park_release_client(agent_park_t *park);

/* Takes turns of the parked request until it has to wait. Returns what the
 * process_connection hook returns. */
int agent_park_advance(conn_rec *c, agent_park_t *park);

/* Ends the parked request of a connection that the MPM is about to close. */
void agent_park_abandon(conn_rec *c, agent_park_t *park);

/* Ends the wait of a request for its body, with rv as for
 * agent_body_read_t.run_handler. Returns what the process_connection hook
 * returns. */
int agent_park_body_end(conn_rec *c, agent_park_t *park, apr_status_t rv);
/* Reads more of the body, which has arrived. Returns what the hook returns. */
int agent_park_body_read_more(conn_rec *c, agent_park_t *park);
/* Waits for more of the body; pending output is sent first. Returns what the
 * hook returns. */
int agent_park_body_wait(conn_rec *c, agent_park_t *park);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The parking state of a connection, private to park.c, park_body.c and
 * park_hooks.c. */
#ifndef AGENT_WAIT_PARK_STATE_H
#define AGENT_WAIT_PARK_STATE_H

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
    bool is_done;
    /* The client's descriptor while the waiter's is in its place; else -1. */
    int client_fd;
    /* The request whose body is incomplete; NULL = none. */
    request_rec *unread;
    agent_reading_t reading;
    agent_body_slot_t *slot;
} agent_park_t;

/* NULL where no connection can park. */
agent_park_t *agent_park_find(const conn_rec *c);

/* The same if this request may park. */
agent_park_t *agent_park_find_usable(const request_rec *r);

/* Undo the exchange of descriptors: for further use of the connection, and as a
 * cleanup (of a conn_rec) before its socket is closed. */
void agent_park_restore_client(conn_rec *c, agent_park_t *park);
apr_status_t agent_park_restore_before_close(void *data);

/* Gives the connection to the MPM until its socket is readable or writable.
 * Returns what the process_connection hook returns. */
int agent_park_wait_in_mpm(conn_rec *c, conn_sense_e sense);

/* Takes turns of the parked request until it has to wait. Returns what the
 * process_connection hook returns. */
int agent_park_advance(conn_rec *c, agent_park_t *park);

/* Ends the parked request of a connection that the MPM is about to close. */
void agent_park_abandon(conn_rec *c, agent_park_t *park);

/* Ends the wait of a request for its body, with rv as in agent_reading_t.go_on.
 * Returns what the process_connection hook returns. */
int agent_park_body_end(conn_rec *c, agent_park_t *park, apr_status_t rv);
/* Reads more of the body, which has arrived. Returns the same. */
int agent_park_body_read_more(conn_rec *c, agent_park_t *park);
/* Waits for more of the body; pending output is sent first. */
int agent_park_body_wait(conn_rec *c, agent_park_t *park);

#endif

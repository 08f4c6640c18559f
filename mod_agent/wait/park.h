/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait without a thread.
 *
 * A waiting request takes turns (turn.h). Between them its connection belongs
 * to the MPM, which calls back when the waiter is woken. Where that is
 * impossible (HTTP/2, other MPMs than event, AgentParking Off) a thread blocks
 * between the turns.
 */
#ifndef AGENT_WAIT_PARK_H
#define AGENT_WAIT_PARK_H

#include <httpd.h>

#include "body_slot.h"
#include "client_socket.h"
#include "turn.h"

/* Registers the hooks; to be called in register_hooks. */
void agent_park_register(apr_pool_t *pool);

/* Prepares a child; to be called in child_init. enabled: AgentParking. threads:
 * how many may send to, or read from, clients of parked requests at the same
 * time (client_dispatch.h). Errors: those of agent_budget_create() and
 * agent_client_dispatch_create(). */
apr_status_t agent_park_start(bool enabled, int threads, apr_pool_t *pool);

/* ---- waiting for a run or thread ---- */

/* Whether the request could wait now; otherwise err says why not. For handlers
 * that are about to create the run to wait for. parking: key, take_turn and
 * baton are not read. */
apr_status_t agent_park_check(const request_rec *r,
                              const agent_parking_t *parking,
                              agent_error_t **err);

/*
 * Takes turns until one is DONE, the first at once with QUERY. *result is the
 * handler's return value: OK or SUSPENDED. Errors: those of
 * agent_waiter_register(), and no turn was taken.
 */
apr_status_t agent_park(int *result, request_rec *r,
                        const agent_parking_t *parking, agent_error_t **err);

/* ---- waiting until a response was sent ---- */

/* From now on the request's output does not block the thread; data that its
 * client does not read is held (output.h) and counts for the deployment, unless
 * that is NULL. False, without effect: the request cannot park, or is
 * parked. */
bool agent_park_hold_response(const request_rec *r, const char *deployment_id);

/*
 * To be called when the response is complete, if agent_park_hold_response() was
 * true. bytes: its text, in the request's pool. Returns what the handler must
 * return: OK, or SUSPENDED if the client has not read all of it, or of earlier
 * responses, which then needs no thread.
 */
int agent_park_send_response(request_rec *r, apr_size_t bytes);

/* ---- waiting for the rest of a request body ---- */

typedef struct agent_body_read_t {
    agent_body_slots_t *slots;
    /* Name of the deployment; borrowed. */
    const char *deployment;
    /* Reads available data without blocking. APR_EAGAIN: more is to come;
     * APR_INCOMPLETE: there may be more than one turn should read. */
    apr_status_t (*read)(void *baton);
    /*
     * Runs the handler, once, with the last result of read(); returns what the
     * handler returns. rv is APR_TIMEUP when the client was silent for Timeout,
     * and APR_EBUSY when the slot was taken for another request.
     */
    int (*run_handler)(void *baton, apr_status_t rv);
    /* In the request's pool. */
    void *baton;
} agent_body_read_t;

/* Whether the request could wait for its body without a thread. */
bool agent_park_can_read(const request_rec *r);

/*
 * has_more: read() may be called at once. Calls read() in any worker when the
 * client has sent more and it is the request's turn. Sends "100 Continue" if
 * the client expects it. Requires agent_park_can_read() and a client socket.
 * Returns the handler's return value. A graceful stop of the child does not end
 * the wait; Timeout and mod_reqtimeout limit it.
 */
int agent_park_read(request_rec *r, const agent_body_read_t *reading,
                    bool has_more);

/* Returns the duplicate of the client's socket, one for each request, in
 * r->pool; NULL when descriptors have run out. */
const agent_client_socket_t *agent_park_client(const request_rec *r);

#endif

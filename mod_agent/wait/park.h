/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait without a thread.
 *
 * A waiting request is taken in turns: it looks, writes what there is, and
 * returns. Between two turns its connection belongs to the MPM, which calls
 * back when the waiter is woken. Where that is not possible (HTTP/2, other MPMs
 * than event, AgentParking Off) the thread blocks between the turns instead.
 */
#ifndef AGENT_WAIT_PARK_H
#define AGENT_WAIT_PARK_H

#include <httpd.h>

#include "turn.h"
#include "body_slot.h"
#include "client_socket.h"

/* What becomes of a request whose client has not sent all of it. */
typedef struct agent_reading_t {
    agent_body_slots_t *slots;
    /* Reads what is there without blocking; APR_EAGAIN: more is to come. */
    apr_status_t (*read)(void *baton);
    /*
     * Once, with what read() said in the end: what a handler does; SUSPENDED
     * when it is parked. APR_TIMEUP: nothing came for the time of Timeout;
     * APR_EBUSY: its slot was taken for another request.
     */
    int (*go_on)(void *baton, apr_status_t rv);
    /* In the request's pool. */
    void *baton;
} agent_reading_t;

/* Called with the module's hooks, and in child_init with the directive's
 * value. */
void agent_park_register(apr_pool_t *pool);
apr_status_t agent_park_start(bool enabled, apr_pool_t *pool);

/*
 * Whether a request could wait now; else err is why not. For who is about to
 * make what it would wait for.
 */
apr_status_t agent_park_check(const request_rec *r, agent_waits_t *waits,
                              agent_error_t **err);

/*
 * Takes turns, the first (with WOKEN) at once, until one is done. *result is
 * what the handler must return to httpd: OK or SUSPENDED. Errors: those of
 * agent_wait_enter(); no turn was taken then.
 */
apr_status_t agent_park(int *result, request_rec *r,
                        const agent_parking_t *parking, agent_error_t **err);

/* Whether a request could wait for the rest of its body without a thread. */
bool agent_park_can_read(const request_rec *r);

/* The one duplicate of its client's socket that a request has, in r->pool; NULL
 * when descriptors have run out. */
const agent_client_socket_t *agent_park_client(const request_rec *r);

/*
 * Only where agent_park_can_read() is true and agent_park_client() is not NULL.
 * From now on read() is called when
 * the client has sent more, in any worker. A client that waits to be asked for
 * its body is asked. Returns what the handler must return to httpd. The end of
 * this child does not stop the request: it is bounded by Timeout and
 * mod_reqtimeout.
 */
int agent_park_read(request_rec *r, const agent_reading_t *reading);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives a request's body into one buffer, before the handler runs.
 *
 * Reads what has arrived without blocking and then parks the request in the
 * MPM, without a thread, until more arrives (see wait/park.h). Where parking is
 * not possible the thread blocks, as long as mod_reqtimeout allows.
 */
#ifndef AGENT_HTTP_BODY_H
#define AGENT_HTTP_BODY_H

#include <stdbool.h>

#include "call.h"

/* Registers the filter; called with the module's hooks. */
void agent_body_register(void);

/*
 * Called in child_init. bytes: the budget for all bodies of the child, not
 * counting the first 8 KB of each; when it is exceeded, incomplete bodies are
 * evicted (wait/budget.h). slots: how many requests may wait for the rest of
 * their bodies, at least 1 (wait/body_slot.h); blocked: how many threads may
 * block for it where requests cannot park. *out is in pool.
 */
apr_status_t agent_bodies_create(agent_bodies_t **out, apr_int64_t bytes,
                                 int slots, int blocked, apr_pool_t *pool);

/*
 * Reads at most AgentMaxBody bytes into call->body and calls then(call), in
 * this thread or later in another. Sends the error if that fails: 400, 408,
 * 413, 415, or 503 for a lost slot or for lack of descriptors. Takes up to 3
 * times the body's length while it reads, then its length. Returns what the
 * handler returns to httpd.
 */
int agent_body_receive(agent_call_t *call, int (*then)(agent_call_t *call));

/* Whether a body follows the headers, also that of a HEAD request, which
 * ap_request_has_body() does not count. */
bool agent_body_exists(const request_rec *r);

/* Leaves the body unread: the connection is closed after the response.
 * Otherwise httpd would read the body, blocking a thread, to find the next
 * request. */
void agent_body_skip(request_rec *r);

/* Frees call->body, for a request that is about to wait for its run, which may
 * take hours. */
void agent_body_release(agent_call_t *call);

#endif

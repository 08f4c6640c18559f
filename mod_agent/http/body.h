/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a body, in one buffer, and the wait for them.
 *
 * A request begins when its body is complete. What is there is read without
 * blocking; until the rest comes the connection waits in the MPM, without a
 * thread, where that is possible (see wait/park.h). Elsewhere the thread waits,
 * as long as mod_reqtimeout allows.
 */
#ifndef AGENT_HTTP_BODY_H
#define AGENT_HTTP_BODY_H

#include "call.h"

/* Registers the filter that it needs; once, when the module's hooks are. */
void agent_body_register(void);

/*
 * In child_init. bytes: the budget for the bodies of all its requests, not
 * counting the first 8 KB of each. When it is full, incomplete bodies that wait
 * for their clients are cut; see wait/budget.h. slots: requests that may wait
 * for the rest of their bodies, at least 1; see wait/body_slot.h.
 */
apr_status_t agent_bodies_create(agent_bodies_t **out, apr_int64_t bytes,
                                 int slots, apr_pool_t *pool);

/*
 * Reads the body, at most AgentMaxBody bytes, into call->body, and calls
 * then(call), in this thread or later in another. A body that cannot be read is
 * answered here: 400, 408, 413, 415, or 503 when it has lost its slot, or when
 * no descriptor is left to wait with.
 * Reading and growing takes at most 3 times the body's bytes, of which the
 * text alone stays. Returns what the handler returns to httpd.
 */
int agent_body_receive(agent_call_t *call, int (*then)(agent_call_t *call));

/* Frees the body before the request waits for its run, which may take hours.
 * The handler must have read all it needs of call->body. */
void agent_body_release(agent_call_t *call);

#endif

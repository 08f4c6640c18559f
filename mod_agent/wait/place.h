/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests of a child may wait for the rest of their bodies. */
#ifndef AGENT_WAIT_PLACE_H
#define AGENT_WAIT_PLACE_H

#include "wait.h"

typedef struct agent_place_t agent_place_t;

/*
 * A place, in pool, for a request that waits for its client alone. When none is
 * free, the request that has had one longest loses it: nothing is read from its
 * client_fd any more, which wakes it. So clients that are slow do not keep out
 * those that are not. The caller must return it before client_fd is closed.
 */
agent_place_t *agent_place_take(agent_waits_t *waits, int client_fd,
                                apr_pool_t *pool);

/* False when the place was lost. May be called twice. */
bool agent_place_return(agent_place_t *place);

#endif

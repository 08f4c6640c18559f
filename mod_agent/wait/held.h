/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes that a child holds for clients that do not read them: one budget
 * for all connections. Beyond it, those are cut that hold much for long.
 */
#ifndef AGENT_WAIT_HELD_H
#define AGENT_WAIT_HELD_H

#include <stdbool.h>

#include <apr_pools.h>

typedef struct agent_held_t agent_held_t;
typedef struct agent_holder_t agent_holder_t;

/* Of one child, in pool. */
apr_status_t agent_held_create(agent_held_t **out, apr_size_t budget_bytes,
                               apr_pool_t *pool);

/* Of one connection, in pool; it holds nothing. held: borrowed. */
agent_holder_t *agent_held_add(agent_held_t *held, apr_pool_t *pool);

/*
 * What the connection holds now; fd is its client's socket, which is shut down
 * when the connection is cut: its owner then finds it writable and broken.
 * False: the connection is cut, and must drop what it holds: update to 0, which
 * is due before the socket is closed as well.
 */
bool agent_held_update(agent_holder_t *holder, apr_size_t bytes, int fd);

#endif

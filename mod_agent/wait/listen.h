/* SPDX-License-Identifier: Apache-2.0 */
/* The listen thread: receives notifications on channel agent_runs. */
#ifndef AGENT_WAIT_LISTEN_H
#define AGENT_WAIT_LISTEN_H

#include "state.h"

/* conninfo: libpq's connection string, borrowed. Does not connect yet. */
void agent_listen_init(agent_waiter_registry_t *registry, const char *conninfo,
                       apr_pool_t *pool);

/* The thread's function; data is the registry. */
void *APR_THREAD_FUNC agent_listen_run(apr_thread_t *thread, void *data);

#endif

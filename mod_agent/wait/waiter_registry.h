/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waiter registry of a child: which requests wait for which run or thread.
 * Four threads serve it. The listen thread receives notifications about runs;
 * the watch thread notices clients that disconnect and sends heartbeats; the
 * other two check API keys, and end the requests of keys that are revoked or
 * expire (api_keys.h). They only wake waiters (waiter.h) and never touch a
 * connection.
 */
#ifndef AGENT_WAIT_WAITER_REGISTRY_H
#define AGENT_WAIT_WAITER_REGISTRY_H

#include <apr_time.h>

#include "../core/log.h"
#include "../db/pool.h"
#include "limits.h"

typedef struct agent_waiter_registry_t agent_waiter_registry_t;

/*
 * Creates the registry and starts its threads, which end with pool. conninfo:
 * libpq's connection string, for LISTEN. db: for the queries that read the new
 * events of all subscribed waiters, and check their keys. Errors: those of the
 * system calls.
 */
apr_status_t agent_waiter_registry_create(agent_waiter_registry_t **out,
                                          const char *conninfo,
                                          agent_db_pool_t *db,
                                          const agent_waiter_limits_t *limits,
                                          const agent_log_t *log,
                                          apr_pool_t *pool);

/* To be called when the child stops: refuses new waiters, and wakes streams
 * with AGENT_REASON_STOPPING at once and all other waiters after grace. */
void agent_waiter_registry_stop(agent_waiter_registry_t *registry,
                                apr_interval_time_t grace);

/* Makes a pool that one thread fills and any thread may destroy; the caller
 * must destroy it. Never NULL: the process aborts when memory runs out. */
apr_pool_t *agent_waiter_registry_make_pool(agent_waiter_registry_t *registry);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes what is no longer needed, in short transactions: expired threads,
 * values that no checkpoint uses, events of deleted runs, abandoned copies of
 * threads, old calls, expired items of the store, partitions of old events.
 * Creates the partitions of the next days. */
#ifndef AGENT_SUPERVISOR_EXPIRE_H
#define AGENT_SUPERVISOR_EXPIRE_H

#include "notify.h"
#include "worker.h"

/* Adds the statements to the connection. */
void agent_expire_add(agent_database_t *database, const agent_worker_t *worker,
                      agent_notify_t *notify);

/* The retention of events as an interval of PostgreSQL, in pool; 100 years when
 * none is configured. */
const char *agent_expire_retention(const agent_context_t *context,
                                   apr_pool_t *pool);

#endif

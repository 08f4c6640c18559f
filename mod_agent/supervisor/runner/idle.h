/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools without work: the runners of a pool that has had no run for its idle
 * time end. Claims then only ask whether it has a ready run, which starts them
 * again (statement/claim.h).
 */
#ifndef AGENT_SUPERVISOR_RUNNER_IDLE_H
#define AGENT_SUPERVISOR_RUNNER_IDLE_H

#include "runner.h"

/* Called each second. */
void agent_runner_tick_idle(const agent_runner_table_t *table,
                            agent_runs_t *runs);

/* Whether the pool has no runners because it had no runs. */
static inline bool agent_pool_is_idle(const agent_runner_pool_t *pool)
{
    return pool->idle_set != NULL;
}

/* The pool has a ready run: its runners are to be started. */
void agent_pool_wake(agent_runner_pool_t *pool, apr_time_t now);

#endif

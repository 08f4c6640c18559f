/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of pools: those that are free, and the runners that provide them. */
#ifndef AGENT_SUPERVISOR_RUNNER_SLOTS_H
#define AGENT_SUPERVISOR_RUNNER_SLOTS_H

#include "runner.h"

/* Starts missing runners of all pools; returns when to call it again at the
 * latest. */
apr_time_t agent_slots_replenish(agent_runner_table_t *table);

/* Free slots of the pool's ordinary runners that reported this set of graphs.
 */
int agent_slots_free(const agent_runner_pool_t *pool,
                     const agent_graph_set_t *set);

/* Runs that the runners of the pool have. */
int agent_slots_used(const agent_runner_pool_t *pool);

/* Quarantine runners of the pool that can be started; 0 if no ordinary one
 * is ready. */
int agent_slots_free_quarantine_runners(const agent_runner_table_t *table,
                                        const agent_runner_pool_t *pool);

/* Quarantine runners that a pool may have at once: all pools have as many. */
int agent_slots_quarantine_share(const agent_runner_table_t *table);

/* The pool's ordinary runner with the fewest runs that has that graph (its
 * number) and a free slot; NULL if there is none. */
agent_runner_t *agent_slots_least_loaded(const agent_runner_pool_t *pool,
                                         int graph);

/* A runner of the pool for at most max_shared quarantined runs with that graph
 * and a free slot, or a new one that is not ready yet; NULL if none can be
 * started.
 */
agent_runner_t *agent_slots_for_quarantined(agent_runner_table_t *table,
                                            agent_runner_pool_t *pool,
                                            int max_shared, int graph);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of pools: those that are free, and the runners that provide them. */
#ifndef AGENT_SUPERVISOR_RUNNER_SLOTS_H
#define AGENT_SUPERVISOR_RUNNER_SLOTS_H

#include "runner.h"

/* Starts missing runners of all pools; returns when to call it again at the
 * latest. */
apr_time_t agent_slots_replenish(agent_runner_table_t *table);

/* Returns the free slots of the pool's ordinary runners that reported the set.
 */
int agent_slots_free(const agent_runner_pool_t *pool,
                     const agent_graph_set_t *set);

/* Returns how many runs the runners of the pool have. */
int agent_slots_used(const agent_runner_pool_t *pool);

/* Returns how many quarantine runners of the pool can be started; 0 if no
 * ordinary one is ready. */
int agent_slots_free_quarantine_runners(const agent_runner_table_t *table,
                                        const agent_runner_pool_t *pool);

/* Returns how many quarantine runners each pool may have at once. */
int agent_slots_quarantine_share(const agent_runner_table_t *table);

/* Returns the pool's ordinary runner with the fewest runs among those with the
 * graph (its number) and a free slot; NULL if there is none. */
agent_runner_t *agent_slots_least_loaded(const agent_runner_pool_t *pool,
                                         int graph);

/* Returns a runner of the pool for at most max_shared quarantined runs, with
 * the graph and a free slot, or a new one that is not ready yet; NULL if none
 * can be started. */
agent_runner_t *agent_slots_for_quarantined(agent_runner_table_t *table,
                                            agent_runner_pool_t *pool,
                                            int max_shared, int graph);

#endif

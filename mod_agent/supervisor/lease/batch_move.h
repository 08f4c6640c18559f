/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves lines from shared batches to dedicated ones. Each shared batch is
 * searched once, when it is the next one: so no iteration of the loop moves
 * more than some hundred kilobytes, and output that is saved by then stays.
 */
#ifndef AGENT_SUPERVISOR_BATCH_MOVE_H
#define AGENT_SUPERVISOR_BATCH_MOVE_H

#include "batch.h"

/* Moves the run's lines of a shared batch to the last of its dedicated batches
 * that have earlier lines, or to a new one after that. */
void agent_batch_move_run(agent_batch_queue_t *queue, agent_batch_t *batch,
                          agent_batch_run_t *run);

/* Marks the lines of runs in all shared batches that are not in flight: they
 * move later. runs: a hash whose keys are their ids (36 bytes). */
void agent_batch_move_runs(agent_batch_queue_t *queue, apr_hash_t *runs);

/*
 * Called when a shared batch was saved in `elapsed`. If it delayed others,
 * marks the deployments that made it slow, and the runs, which get dedicated
 * batches (batch_size.h). Lines of other runs with much output that waits are
 * marked too: they may be as slow.
 */
void agent_batch_move_mark_slow(agent_batch_queue_t *queue,
                                const agent_lease_table_t *leases,
                                const agent_batch_t *batch,
                                apr_interval_time_t elapsed);

/* Moves the lines that have to leave the next shared batch: those of runs with
 * earlier lines in dedicated batches and, into the share of their deployment,
 * those of marked runs, and of slow deployments while theirs take more than
 * AGENT_BATCH_SIZE_TARGET altogether.
 * Called each iteration of the loop before a statement is sent; returns when to
 * call it again at the latest. */
apr_time_t agent_batch_move_step(agent_batch_queue_t *queue);

#endif

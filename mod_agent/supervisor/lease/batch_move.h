/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that leave the shared batches. Each shared batch is looked at once,
 * when it is the next one: so no iteration of the loop moves more than some
 * hundred kilobytes, and output that was saved by then has not moved.
 */
#ifndef AGENT_SUPERVISOR_BATCH_MOVE_H
#define AGENT_SUPERVISOR_BATCH_MOVE_H

#include "batch.h"

/* The run's lines of a shared batch move to its dedicated batches: to the last
 * one that has earlier lines, or to a new one after that. */
void agent_batch_move_run(agent_batch_queue_t *queue, agent_batch_t *batch,
                          agent_batch_run_t *run);

/* Adds to a hash as below the runs whose lines in waiting shared batches have
 * more than that weight. Keys are borrowed from the batches. */
void agent_batch_find_large(const agent_batch_queue_t *queue, apr_size_t weight,
                            apr_hash_t *runs, apr_pool_t *pool);

/* The lines of runs leave all shared batches that wait. runs: a hash whose keys
 * are their ids (36 bytes). */
void agent_batch_move(agent_batch_queue_t *queue, apr_hash_t *runs);

/* A shared batch was saved in that time. If it was slow, so are the deployments
 * that took a part of it (pace.h). */
void agent_batch_measure(agent_batch_queue_t *queue, const agent_batch_t *batch,
                         apr_interval_time_t elapsed);

/* Moves the lines that have to leave the next shared batch: those of the runs
 * above, of runs with earlier lines in dedicated batches, and of slow
 * deployments while theirs take more than AGENT_PACE_AIM altogether. Called
 * each iteration of the loop before a statement is sent; returns when to call
 * it again at the latest. */
apr_time_t agent_batch_step(agent_batch_queue_t *queue);

#endif

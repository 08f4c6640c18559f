/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of batches that are not in flight become batches of their own. */
#ifndef AGENT_SUPERVISOR_BATCH_SPLIT_H
#define AGENT_SUPERVISOR_BATCH_SPLIT_H

#include "batch.h"

/* Replaces a shared batch by a dedicated one for each of its runs, to which
 * their lines in later batches move too. */
void agent_batch_split(agent_batch_queue_t *queue, agent_batch_t *batch);

/* Adds to a hash as below the runs whose lines in waiting shared batches have
 * more than that weight. Keys are copied to the pool. */
void agent_batch_find_large(const agent_batch_queue_t *queue, apr_size_t weight,
                            apr_hash_t *runs, apr_pool_t *pool);

/* Moves the lines of runs from all shared batches to dedicated ones. runs: a
 * hash whose keys are their ids (36 bytes). */
void agent_batch_move(agent_batch_queue_t *queue, apr_hash_t *runs);

/* Replaces a dedicated batch that has several lines and more than that weight
 * (pace.h) by several: the first one has at most the weight, or a single line,
 * and each has twice as much as the one before. Returns the first one, or the
 * batch itself. */
agent_batch_t *agent_batch_cut(agent_batch_queue_t *queue, agent_batch_t *batch,
                               apr_size_t weight);

#endif

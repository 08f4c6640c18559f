/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces a batch that is not in flight by several. */
#ifndef AGENT_SUPERVISOR_BATCH_SPLIT_H
#define AGENT_SUPERVISOR_BATCH_SPLIT_H

#include "batch.h"

/* Replaces a shared batch by dedicated ones of its runs. Their lines in later
 * batches follow while these are not saved (batch_move.h). */
void agent_batch_split_by_run(agent_batch_queue_t *queue, agent_batch_t *batch);

/* Splits a dedicated batch that has several lines and a higher cost
 * (batch_size.h): the first part has at most `cost`, or a single line, and each
 * other one twice as much as the one before. Returns the first part; the batch
 * itself if it was not split. */
agent_batch_t *agent_batch_split_by_cost(agent_batch_queue_t *queue,
                                         agent_batch_t *batch, apr_size_t cost);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of batches that are not in flight become batches of their own. */
#ifndef AGENT_SUPERVISOR_BATCH_SPLIT_H
#define AGENT_SUPERVISOR_BATCH_SPLIT_H

#include "batch.h"

/* Replaces a shared batch, not in flight, by dedicated ones of its runs. Their
 * lines in later batches follow while these are not saved (batch_move.h). */
void agent_batch_split(agent_batch_queue_t *queue, agent_batch_t *batch);

/* Replaces a dedicated batch that has several lines and more than that weight
 * (pace.h) by several: the first one has at most the weight, or a single line,
 * and each has twice as much as the one before. Returns the first one, or the
 * batch itself. */
agent_batch_t *agent_batch_cut(agent_batch_queue_t *queue, agent_batch_t *batch,
                               apr_size_t weight);

#endif

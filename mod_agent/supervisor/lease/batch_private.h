/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the files of batches share. */
#ifndef AGENT_SUPERVISOR_BATCH_PRIVATE_H
#define AGENT_SUPERVISOR_BATCH_PRIVATE_H

#include "batch.h"

/* Makes a dedicated batch of the run, due now, before another one of the run;
 * NULL: it is the last one, and later lines are added to it. It waits for the
 * shared batch with the number `after`; 0: for none. */
agent_batch_t *agent_batch_make_dedicated(agent_batch_queue_t *queue,
                                          const agent_batch_run_t *run,
                                          agent_batch_t *later,
                                          apr_uint64_t after);

/* Whether the batch can take more lines of `bytes` together. */
bool agent_batch_has_room(const agent_batch_queue_t *queue,
                          const agent_batch_t *batch, int lines,
                          apr_size_t bytes);

/* Sets whether the batch is in flight. */
void agent_batch_set_sent(agent_batch_queue_t *queue, agent_batch_t *batch,
                          bool is_sent);

/* Adds a copy of an item of the run, the one with the number in `from`. */
void agent_batch_copy(agent_batch_queue_t *queue, agent_batch_t *to,
                      const agent_batch_run_t *run, const agent_batch_t *from,
                      int number);

/* Discards the items of the run in the batch, which gets no more lines: later
 * ones of the run would be found in a part that is not sent. */
void agent_batch_discard_run(agent_batch_queue_t *queue, agent_batch_t *batch,
                             agent_batch_run_t *run);

/* Removes the batch if no item of it is to be sent; returns whether it did. */
bool agent_batch_remove_if_empty(agent_batch_queue_t *queue,
                                 agent_batch_t *batch);

#endif

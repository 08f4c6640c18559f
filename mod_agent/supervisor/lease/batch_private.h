/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of batch.c that batch_split.c uses too. */
#ifndef AGENT_SUPERVISOR_BATCH_PRIVATE_H
#define AGENT_SUPERVISOR_BATCH_PRIVATE_H

#include "batch.h"

/* Makes a dedicated batch of the run before another batch, due now. */
agent_batch_t *agent_batch_make_dedicated(agent_batch_queue_t *queue,
                                          const char *run_id,
                                          const char *deployment_id,
                                          agent_batch_t *next);

/* Later lines of the batch's run are added to this dedicated batch. */
void agent_batch_enter_dedicated(agent_batch_queue_t *queue,
                                 agent_batch_t *batch);

/* Adds an item of the run with that text; offset and run are set here. */
void agent_batch_append(agent_batch_queue_t *queue, agent_batch_t *batch,
                        const agent_batch_run_t *run, const agent_item_t *from,
                        const char *text);

/* Drops a batch of which no item is to be sent. */
void agent_batch_drop_if_dead(agent_batch_queue_t *queue, agent_batch_t *batch);

#endif

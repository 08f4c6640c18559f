/* SPDX-License-Identifier: Apache-2.0 */
/* Which batch is sent next, and those in flight. */
#ifndef AGENT_SUPERVISOR_BATCH_SEND_H
#define AGENT_SUPERVISOR_BATCH_SEND_H

#include "batch.h"

/* The oldest shared batch, which may be in flight; NULL: there is none. */
agent_batch_t *agent_batch_first_shared(const agent_batch_queue_t *queue);

/* Return the shared and the dedicated batch to be sent first, which may not be
 * due yet; NULL: none may be sent. */
agent_batch_t *agent_batch_next_shared(const agent_batch_queue_t *queue);
agent_batch_t *agent_batch_next_dedicated(const agent_batch_queue_t *queue);

/* The batch is in flight; it failed, and is sent again from retry_at on. */
void agent_batch_send(agent_batch_queue_t *queue, agent_batch_t *batch);
void agent_batch_fail(agent_batch_queue_t *queue, agent_batch_t *batch,
                      apr_time_t retry_at);

#endif

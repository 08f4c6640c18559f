/* SPDX-License-Identifier: Apache-2.0 */
/* The next batch of each connection, and the batches in flight. */
#ifndef AGENT_SUPERVISOR_BATCH_SEND_H
#define AGENT_SUPERVISOR_BATCH_SEND_H

#include "batch.h"

/* Returns the oldest shared batch, which may be in flight; NULL: none. */
agent_batch_t *agent_batch_send_first_shared(const agent_batch_queue_t *queue);

/* Return the shared and the dedicated batch to be sent first, which may not be
 * due yet; NULL: none may be sent. */
agent_batch_t *agent_batch_send_next_shared(const agent_batch_queue_t *queue);
agent_batch_t *agent_batch_send_next_dedicated(
    const agent_batch_queue_t *queue);

/* Returns the dedicated batch to be sent first of those that need no more than
 * AGENT_BATCH_SIZE_TIMEOUT (batch_size.h). */
agent_batch_t *agent_batch_send_next_brief(const agent_batch_queue_t *queue,
                                           const agent_lease_table_t *leases);

/* Returns the dedicated batch to be sent first of those that have not failed
 * yet. */
agent_batch_t *agent_batch_send_next_unfailed(const agent_batch_queue_t *queue);

/* Makes the line alone due that is next of those that wait since the database
 * lacked resources, and cost at most that much. */
void agent_batch_send_hasten(const agent_batch_queue_t *queue, apr_size_t cost);

/* Whether a batch in flight has output of the run under this lease. */
bool agent_batch_send_has(const agent_batch_queue_t *queue,
                          const agent_lease_key_t *key);

/* Marks the batch as being in flight. */
void agent_batch_send_begin(agent_batch_queue_t *queue, agent_batch_t *batch);
/* Ends an attempt that failed; the batch is sent again from retry_at on. */
void agent_batch_send_fail(agent_batch_queue_t *queue, agent_batch_t *batch,
                           apr_time_t retry_at);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which batch is sent next. Dedicated batches share one connection, on which an
 * attempt may take until the time limit of a statement. Hierarchical start-time
 * fair queueing: accounts share the connection, the deployments of each its
 * part, the runs of a deployment the part of that one. README.md has the rules.
 */
#ifndef AGENT_SUPERVISOR_FAIR_QUEUE_H
#define AGENT_SUPERVISOR_FAIR_QUEUE_H

#include "batch.h"

void agent_fair_queue_init(agent_batch_queue_t *queue);

/* A shared batch gets its number, and is the last one. */
void agent_fair_queue_enter_shared(agent_batch_queue_t *queue,
                                   agent_batch_t *batch);

/* A dedicated batch precedes another one of its run; NULL: it is the last one.
 * Shares that had none begin at the owner's virtual time, or at their finish
 * tag if that is later. */
void agent_fair_queue_enter(agent_batch_queue_t *queue, agent_batch_t *batch,
                            const char *deployment_id, agent_batch_t *later);

/* The dedicated batches of a run: the first one; the one after, or before,
 * another one. NULL for none. The id of their deployment. */
agent_batch_t *agent_fair_queue_first_of(const agent_batch_queue_t *queue,
                                         const char *run_id);
agent_batch_t *agent_fair_queue_next_of(const agent_batch_t *batch);
agent_batch_t *agent_fair_queue_previous_of(const agent_batch_t *batch);
const char *agent_fair_queue_deployment(const agent_batch_t *batch);

/* The oldest shared batch, which may be in flight; NULL for none. */
agent_batch_t *agent_fair_queue_first_shared(const agent_batch_queue_t *queue);

/* A batch is dropped; one that is in flight has been saved. Shares without
 * batches are forgotten after their finish tag has passed. */
void agent_fair_queue_leave(agent_batch_queue_t *queue, agent_batch_t *batch);

/* When the batch may be sent. */
apr_time_t agent_fair_queue_due(const agent_batch_queue_t *queue,
                                const agent_batch_t *batch);

/* The batch that is to be sent first, of the dedicated or of the shared ones;
 * NULL when none may be. Of the dedicated ones that are due it is one of the
 * account with the least start tag, of these one of the deployment with the
 * least, of these that of the run with the least. Of equal accounts, and
 * deployments, the newest precedes; of equal runs the oldest. */
agent_batch_t *agent_fair_queue_next(const agent_batch_queue_t *queue,
                                     bool is_dedicated);

/* The batch is in flight; it failed, and is sent again from retry_at on. */
void agent_fair_queue_send(agent_batch_queue_t *queue, agent_batch_t *batch);
void agent_fair_queue_fail(agent_batch_queue_t *queue, agent_batch_t *batch,
                           apr_time_t retry_at);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which batch is sent next. Lanes share one connection, on which a batch may
 * take until its time limit, several times: deployments take turns, and so do
 * the runs of each, so that any number of runs of one deployment, and of
 * attempts of one run, delays another one by one attempt.
 */
#ifndef AGENT_SUPERVISOR_ROUND_ROBIN_H
#define AGENT_SUPERVISOR_ROUND_ROBIN_H

#include "batch.h"

/* When the batch may be sent. */
apr_time_t agent_round_robin_due(const agent_batch_queue_t *queue,
                                 const agent_batch_t *batch);

/* The batch that is to be sent first, of the lanes or of the shared ones; NULL
 * when none may be. Of the lanes that are due it is one of the deployment whose
 * last turn, or whose lane if it had none, is the oldest; of these that of the
 * run of which the same is true. */
agent_batch_t *agent_round_robin_next(const agent_batch_queue_t *queue,
                                      bool is_lane);

/* The batch is in flight; it failed, and is sent again from retry_at on. Both
 * are a turn of the lane's run and deployment. */
void agent_round_robin_send(agent_batch_queue_t *queue, agent_batch_t *batch);
void agent_round_robin_fail(agent_batch_queue_t *queue, agent_batch_t *batch,
                            apr_time_t retry_at);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which batch is sent next. Dedicated batches share one connection, on
 * which a batch may take until its time limit, several times. Start-time fair
 * queueing: each deployment, and within it each run, is charged the time for
 * which it used the connection, and the one that used the least is next. So a
 * slow run delays a quick one by the attempt in flight, however many runs
 * either deployment has.
 */
#ifndef AGENT_SUPERVISOR_FAIR_QUEUE_H
#define AGENT_SUPERVISOR_FAIR_QUEUE_H

#include "batch.h"

/* The share of the connection that a deployment, or a run of one, has had. */
typedef struct agent_share_t {
    APR_RING_ENTRY(agent_share_t) link;
    /* NULL: it is a deployment's. */
    struct agent_share_t *owner;
    char id[AGENT_UUID_SIZE];
    /* A virtual time: what it used, and where it began. */
    apr_interval_time_t used;
    /* How many dedicated batches wait or are in flight. */
    int batches;
} agent_share_t;

void agent_fair_queue_init(agent_batch_queue_t *queue);

/* A dedicated batch was made: a deployment, or a run, that had none begins at
 * the least of those of the others that have one, unless it used more. */
void agent_fair_queue_enter(agent_batch_queue_t *queue, agent_batch_t *batch,
                            const char *deployment_id);

/* A dedicated batch is dropped; one that is in flight has been saved. A share
 * without batches is kept while it is larger than that at which it would begin.
 */
void agent_fair_queue_leave(agent_batch_queue_t *queue, agent_batch_t *batch);

/* When the batch may be sent. */
apr_time_t agent_fair_queue_due(const agent_batch_queue_t *queue,
                                const agent_batch_t *batch);

/* The batch that is to be sent first, of the dedicated or of the shared ones;
 * NULL when none may be. Of the dedicated ones that are due it is one of the
 * deployment with the smallest share; of these that of the run with the
 * smallest share. */
agent_batch_t *agent_fair_queue_next(const agent_batch_queue_t *queue,
                                     bool is_dedicated);

/* The batch is in flight; it failed, and is sent again from retry_at on. */
void agent_fair_queue_send(agent_batch_queue_t *queue, agent_batch_t *batch);
void agent_fair_queue_fail(agent_batch_queue_t *queue, agent_batch_t *batch,
                           apr_time_t retry_at);

#endif

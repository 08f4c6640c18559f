/* SPDX-License-Identifier: Apache-2.0 */
/* The turns of batches; see round_robin.h. */
#include "round_robin.h"

#include <string.h>

/* Whether no earlier batch has output of the lane's run. */
static bool is_next_of_run(const agent_batch_queue_t *queue,
                           const agent_batch_t *lane)
{
    const agent_batch_t *batch = APR_RING_FIRST(&queue->waiting);

    for (; batch != lane; batch = APR_RING_NEXT(batch, link)) {
        const agent_batch_run_t *run = apr_hash_get(batch->runs, lane->lane_key,
                                                    36);

        if (run != NULL && !run->is_dead) {
            return false;
        }
    }
    return true;
}

apr_time_t agent_round_robin_due(const agent_batch_queue_t *queue,
                                 const agent_batch_t *batch)
{
    apr_time_t due = batch->is_sealed ? queue->context->now : batch->due_at;

    return due > batch->retry_at ? due : batch->retry_at;
}

/* Whether the lane is to be sent before the other one. */
static bool precedes(const agent_batch_queue_t *queue,
                     const agent_batch_t *lane, const agent_batch_t *other)
{
    apr_time_t now = queue->context->now;
    apr_time_t due = agent_round_robin_due(queue, lane);
    apr_time_t other_due = agent_round_robin_due(queue, other);

    if (due > now || other_due > now) {
        return due < other_due;
    }
    return lane->deployment_turn == other->deployment_turn
        ? lane->turn < other->turn
        : lane->deployment_turn < other->deployment_turn;
}

agent_batch_t *agent_round_robin_next(const agent_batch_queue_t *queue,
                                      bool is_lane)
{
    agent_batch_t *best = NULL;
    agent_batch_t *batch;

    AGENT_RING_EACH(batch, &queue->waiting, agent_batch_t, link)
    {
        if (batch->is_lane != is_lane || batch->is_sent) {
            continue;
        }
        if (!is_lane) {
            /* Shared batches are sent in order. */
            return batch;
        }
        if ((best == NULL || precedes(queue, batch, best))
            && is_next_of_run(queue, batch)) {
            best = batch;
        }
    }
    return best;
}

static void end_turn(agent_batch_queue_t *queue, const agent_batch_t *lane)
{
    agent_batch_t *batch;

    queue->last_turn++;
    AGENT_RING_EACH(batch, &queue->waiting, agent_batch_t, link)
    {
        if (!batch->is_lane
            || strcmp(batch->deployment_id, lane->deployment_id) != 0) {
            continue;
        }
        batch->deployment_turn = queue->last_turn;
        if (memcmp(batch->lane_key, lane->lane_key, 36) == 0) {
            batch->turn = queue->last_turn;
        }
    }
}

void agent_round_robin_send(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    batch->is_sealed = true;
    batch->is_sent = true;
    if (batch->is_lane) {
        end_turn(queue, batch);
    }
}

void agent_round_robin_fail(agent_batch_queue_t *queue, agent_batch_t *batch,
                            apr_time_t retry_at)
{
    batch->is_sent = false;
    batch->retry_at = retry_at;
    if (batch->is_lane) {
        end_turn(queue, batch);
    }
}

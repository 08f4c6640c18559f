/* SPDX-License-Identifier: Apache-2.0 */
/* The next batches and those in flight; see batch_send.h. */
#include "batch_send.h"

#include "batch_private.h"

agent_batch_t *agent_batch_send_first_shared(const agent_batch_queue_t *queue)
{
    return APR_RING_EMPTY(&queue->shared, agent_batch_t, link)
        ? NULL
        : APR_RING_FIRST(&queue->shared);
}

/* They are sent in order. A batch of which lines still move waits. */
agent_batch_t *agent_batch_send_next_shared(const agent_batch_queue_t *queue)
{
    agent_batch_t *batch = agent_batch_send_first_shared(queue);

    if (batch != NULL && batch->is_sent) {
        batch = APR_RING_NEXT(batch, link);
    }
    return batch != APR_RING_SENTINEL(&queue->shared, agent_batch_t, link)
            && !queue->is_moving
        ? batch
        : NULL;
}

static agent_batch_t *next_dedicated(const agent_batch_queue_t *queue,
                                     agent_fair_queue_test_t *may_send,
                                     const void *part)
{
    const agent_batch_t *shared = agent_batch_send_first_shared(queue);

    return agent_fair_queue_next(
        &queue->dedicated, shared != NULL ? shared->number : APR_UINT64_MAX,
        may_send, part);
}

agent_batch_t *agent_batch_send_next_dedicated(const agent_batch_queue_t *queue)
{
    return next_dedicated(queue, NULL, NULL);
}

static bool is_brief(const void *part, const agent_batch_t *batch)
{
    const agent_lease_table_t *leases = part;
    const agent_lease_t *lease = agent_lease_find(
        leases, &agent_batch_item(batch, 0)->run->key);

    return lease == NULL || !lease->batch_size.needs_long_limit;
}

agent_batch_t *agent_batch_send_next_brief(const agent_batch_queue_t *queue,
                                           const agent_lease_table_t *leases)
{
    return next_dedicated(queue, is_brief, leases);
}

static bool has_not_failed(const void *part, const agent_batch_t *batch)
{
    return batch->failures == 0 && batch->patience.failures == 0;
}

agent_batch_t *agent_batch_send_next_unfailed(const agent_batch_queue_t *queue)
{
    return next_dedicated(queue, has_not_failed, NULL);
}

static bool lacks_resources(const void *part, const agent_batch_t *batch)
{
    return batch->patience.is_shortage
        && batch->cost <= *(const apr_size_t *)part;
}

void agent_batch_send_hasten(const agent_batch_queue_t *queue, apr_size_t cost)
{
    agent_batch_t *batch = next_dedicated(queue, lacks_resources, &cost);

    if (batch != NULL) {
        batch->retry_at = queue->context->now;
        batch->patience.is_shortage = false;
    }
}

void agent_batch_set_sent(agent_batch_queue_t *queue, agent_batch_t *batch,
                          bool is_sent)
{
    agent_batch_t **sent = batch->is_dedicated ? &queue->sent_dedicated
                                               : &queue->sent_shared;

    batch->is_sent = is_sent;
    if (is_sent) {
        *sent = batch;
    }
    else if (*sent == batch) {
        *sent = NULL;
    }
}

static bool has_output(const agent_batch_t *batch, const agent_lease_key_t *key)
{
    const agent_batch_run_t *run = batch != NULL
        ? apr_hash_get(batch->runs, key->run_id, sizeof(key->run_id))
        : NULL;

    return run != NULL && !run->is_discarded && run->key.epoch == key->epoch;
}

bool agent_batch_send_has(const agent_batch_queue_t *queue,
                          const agent_lease_key_t *key)
{
    return has_output(queue->sent_shared, key)
        || has_output(queue->sent_dedicated, key);
}

void agent_batch_send_begin(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    batch->is_sealed = batch->is_sent_once = true;
    batch->sent_at = queue->context->now;
    agent_batch_set_sent(queue, batch, true);
    if (batch->is_dedicated) {
        agent_fair_queue_begin(batch);
    }
}

void agent_batch_send_fail(agent_batch_queue_t *queue, agent_batch_t *batch,
                           apr_time_t retry_at)
{
    agent_batch_set_sent(queue, batch, false);
    batch->retry_at = retry_at;
    if (batch->is_dedicated) {
        agent_fair_queue_charge(&queue->dedicated, batch);
    }
}

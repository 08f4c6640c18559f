/* SPDX-License-Identifier: Apache-2.0 */
/* The shares of a connection; see fair_queue.h. */
#include "fair_queue.h"

#include <string.h>

#include <apr_strings.h>

void agent_fair_queue_init(agent_batch_queue_t *queue)
{
    APR_RING_INIT(&queue->shares, agent_share_t, link);
    APR_RING_INIT(&queue->free_shares, agent_share_t, link);
}

/* The least that those of one owner with batches used, except for one of them;
 * AGENT_CLOCK_NEVER without any. */
static apr_interval_time_t least_used(const agent_batch_queue_t *queue,
                                      const agent_share_t *owner,
                                      const agent_share_t *except)
{
    apr_interval_time_t least = AGENT_CLOCK_NEVER;
    const agent_share_t *share;

    AGENT_RING_EACH(share, &queue->shares, agent_share_t, link)
    {
        if (share->owner == owner && share != except && share->batches > 0
            && share->used < least) {
            least = share->used;
        }
    }
    return least;
}

static agent_share_t *find_share(const agent_batch_queue_t *queue,
                                 const agent_share_t *owner, const char *id)
{
    agent_share_t *share;

    AGENT_RING_EACH(share, &queue->shares, agent_share_t, link)
    {
        if (share->owner == owner && strcmp(share->id, id) == 0) {
            return share;
        }
    }
    return NULL;
}

static agent_share_t *make_share(agent_batch_queue_t *queue,
                                 agent_share_t *owner, const char *id)
{
    agent_share_t *share = APR_RING_FIRST(&queue->free_shares);

    if (APR_RING_EMPTY(&queue->free_shares, agent_share_t, link)) {
        share = apr_palloc(queue->context->pool, sizeof(*share));
    }
    else {
        APR_RING_REMOVE(share, link);
    }
    share->owner = owner;
    share->used = 0;
    share->batches = 0;
    apr_cpystrn(share->id, id, sizeof(share->id));
    APR_RING_INSERT_TAIL(&queue->shares, share, agent_share_t, link);
    return share;
}

/* The share of that id has one batch more. */
static agent_share_t *enter_share(agent_batch_queue_t *queue,
                                  agent_share_t *owner, const char *id)
{
    agent_share_t *share = find_share(queue, owner, id);
    apr_interval_time_t least;

    if (share == NULL) {
        share = make_share(queue, owner, id);
    }
    if (share->batches++ == 0) {
        least = least_used(queue, owner, share);
        if (least != AGENT_CLOCK_NEVER && least > share->used) {
            share->used = least;
        }
    }
    return share;
}

void agent_fair_queue_enter(agent_batch_queue_t *queue, agent_batch_t *batch,
                            const char *deployment_id)
{
    agent_share_t *owner = enter_share(queue, NULL, deployment_id);

    batch->share = enter_share(queue, owner,
                               apr_pstrmemdup(batch->pool, batch->run_id, 36));
}

/* Frees shares of the owner without batches that would begin where they are. */
static void free_shares(agent_batch_queue_t *queue, const agent_share_t *owner)
{
    apr_interval_time_t least = least_used(queue, owner, NULL);
    agent_share_t *share;
    agent_share_t *next;

    AGENT_RING_EACH_SAFE(share, next, &queue->shares, agent_share_t, link)
    {
        if (share->owner == owner && share->batches == 0
            && share->used <= least) {
            APR_RING_REMOVE(share, link);
            APR_RING_INSERT_TAIL(&queue->free_shares, share, agent_share_t,
                                 link);
        }
    }
}

/* The time since the batch was sent; at least 1, so that attempts that take no
 * time are taken in turn too. */
static void charge(const agent_batch_queue_t *queue, const agent_batch_t *batch)
{
    apr_interval_time_t used = queue->context->now - batch->sent_at;

    used = used > 1 ? used : 1;
    batch->share->used += used;
    batch->share->owner->used += used;
}

void agent_fair_queue_leave(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    agent_share_t *owner = batch->share->owner;

    if (batch->is_sent) {
        charge(queue, batch);
    }
    batch->share->batches--;
    owner->batches--;
    free_shares(queue, owner);
    free_shares(queue, NULL);
}

/* Whether no earlier batch has output of the batch's run. */
static bool is_next_of_run(const agent_batch_queue_t *queue,
                           const agent_batch_t *batch)
{
    const agent_batch_t *earlier = APR_RING_FIRST(&queue->waiting);

    for (; earlier != batch; earlier = APR_RING_NEXT(earlier, link)) {
        const agent_batch_run_t *run = apr_hash_get(earlier->runs,
                                                    batch->run_id, 36);

        if (run != NULL && !run->is_dead) {
            return false;
        }
    }
    return true;
}

apr_time_t agent_fair_queue_due(const agent_batch_queue_t *queue,
                                const agent_batch_t *batch)
{
    apr_time_t due = batch->is_sealed ? queue->context->now : batch->due_at;

    return due > batch->retry_at ? due : batch->retry_at;
}

/* Whether the batch is to be sent before the other one. */
static bool precedes(const agent_batch_queue_t *queue,
                     const agent_batch_t *batch, const agent_batch_t *other)
{
    apr_time_t now = queue->context->now;
    apr_time_t due = agent_fair_queue_due(queue, batch);
    apr_time_t other_due = agent_fair_queue_due(queue, other);

    if (due > now || other_due > now) {
        return due < other_due;
    }
    return batch->share->owner == other->share->owner
        ? batch->share->used < other->share->used
        : batch->share->owner->used < other->share->owner->used;
}

agent_batch_t *agent_fair_queue_next(const agent_batch_queue_t *queue,
                                     bool is_dedicated)
{
    agent_batch_t *best = NULL;
    agent_batch_t *batch;

    AGENT_RING_EACH(batch, &queue->waiting, agent_batch_t, link)
    {
        if (batch->is_dedicated != is_dedicated || batch->is_sent) {
            continue;
        }
        if (!is_dedicated) {
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

void agent_fair_queue_send(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    batch->is_sealed = true;
    batch->is_sent = true;
    batch->sent_at = queue->context->now;
}

void agent_fair_queue_fail(agent_batch_queue_t *queue, agent_batch_t *batch,
                           apr_time_t retry_at)
{
    batch->is_sent = false;
    batch->retry_at = retry_at;
    if (batch->is_dedicated) {
        charge(queue, batch);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shares of a connection; see fair_queue.h.
 *
 * The length of an attempt is known when it ends. Until then the start tag is
 * that of its beginning, and the virtual time at least that; at the end the
 * tag, and the virtual time divided by the number of shares with batches,
 * advance by the time used. So it advances with each attempt: a stream of new
 * runs, each of which begins at it, passes every finish tag. Times are
 * microseconds of use since the owner had no batches, which 64 bits hold for
 * 292,000 years.
 */
#include "fair_queue.h"

#include <string.h>

#include <apr_strings.h>

#include "../base/order.h"

/* Idle shares that are looked at for each batch that leaves, at each level: one
 * may become idle with it, so they become fewer. */
#define SWEPT 2

static void init_share(agent_share_t *share, agent_share_t *owner)
{
    memset(share, 0, sizeof(*share));
    share->owner = owner;
    APR_RING_INIT(&share->queue, agent_batch_t, place.link);
    APR_RING_INIT(&share->idle, agent_share_t, link);
}

void agent_fair_queue_init(agent_batch_queue_t *queue)
{
    apr_pool_t *pool = queue->context->pool;
    agent_fair_queue_t *fair = &queue->fair;

    init_share(&fair->root, NULL);
    for (int i = 0; i < AGENT_SHARE_LEVELS; i++) {
        fair->shares[i] = apr_hash_make(pool);
    }
    APR_RING_INIT(&fair->shared, agent_batch_t, place.link);
    APR_RING_INIT(&fair->runs, agent_share_t, link);
    APR_RING_INIT(&fair->free, agent_share_t, link);
    fair->entered = fair->made = 0;
}

/* ---- shares ---- */

static agent_share_t *make_share(agent_batch_queue_t *queue,
                                 agent_share_t *owner,
                                 agent_share_level_t level, const char *id)
{
    agent_fair_queue_t *fair = &queue->fair;
    agent_share_t *share = APR_RING_FIRST(&fair->free);

    if (APR_RING_EMPTY(&fair->free, agent_share_t, link)) {
        share = apr_palloc(queue->context->pool, sizeof(*share));
    }
    else {
        APR_RING_REMOVE(share, link);
    }
    init_share(share, owner);
    share->level = level;
    apr_cpystrn(share->id, id, sizeof(share->id));
    apr_hash_set(fair->shares[level], share->id, APR_HASH_KEY_STRING, share);
    APR_RING_INSERT_TAIL(&owner->idle, share, agent_share_t, link);
    return share;
}

static agent_share_t *find_share(agent_batch_queue_t *queue,
                                 agent_share_t *owner,
                                 agent_share_level_t level, const char *id)
{
    agent_share_t *share = apr_hash_get(queue->fair.shares[level], id,
                                        APR_HASH_KEY_STRING);

    return share != NULL ? share : make_share(queue, owner, level, id);
}

static agent_share_t *find_run(agent_batch_queue_t *queue,
                               const agent_batch_t *batch,
                               const char *deployment_id)
{
    agent_share_t *root = &queue->fair.root;
    agent_share_t *account = find_share(
        queue, root, AGENT_SHARE_ACCOUNT,
        agent_account_map_find(&queue->accounts, deployment_id));
    agent_share_t *deployment = find_share(
        queue, account, AGENT_SHARE_DEPLOYMENT, deployment_id);
    char run_id[AGENT_UUID_SIZE];

    apr_cpystrn(run_id, batch->run_id, sizeof(run_id));
    return find_share(queue, deployment, AGENT_SHARE_RUN, run_id);
}

static void forget_share(agent_fair_queue_t *fair, agent_share_t *share)
{
    apr_hash_set(fair->shares[share->level], share->id, APR_HASH_KEY_STRING,
                 NULL);
    APR_RING_INSERT_TAIL(&fair->free, share, agent_share_t, link);
}

/* Forgets idle shares whose finish tag has passed. Without any that has batches
 * all begin again, together. */
static void sweep(agent_fair_queue_t *fair, agent_share_t *owner)
{
    for (int i = 0; (i < SWEPT || owner->active == 0)
         && !APR_RING_EMPTY(&owner->idle, agent_share_t, link);
         i++) {
        agent_share_t *share = APR_RING_FIRST(&owner->idle);

        APR_RING_REMOVE(share, link);
        if (owner->active == 0 || share->tag <= owner->time) {
            forget_share(fair, share);
        }
        else {
            APR_RING_INSERT_TAIL(&owner->idle, share, agent_share_t, link);
        }
    }
    if (owner->active == 0) {
        owner->time = owner->rest = 0;
    }
}

/* It has its first batch. Deployments and accounts with batches are members of
 * no ring. */
static void begin_waiting(agent_fair_queue_t *fair, agent_share_t *share)
{
    agent_share_t *owner = share->owner;

    APR_RING_REMOVE(share, link);
    if (share->level == AGENT_SHARE_RUN) {
        APR_RING_INSERT_TAIL(&fair->runs, share, agent_share_t, link);
    }
    if (share->tag < owner->time) {
        share->tag = owner->time;
    }
    share->entered = ++fair->entered;
    owner->active++;
}

static void end_waiting(agent_share_t *share)
{
    if (share->level == AGENT_SHARE_RUN) {
        APR_RING_REMOVE(share, link);
    }
    APR_RING_INSERT_TAIL(&share->owner->idle, share, agent_share_t, link);
    share->owner->active--;
}

/* ---- batches of a run ---- */

agent_batch_t *agent_fair_queue_first_of(const agent_batch_queue_t *queue,
                                         const char *run_id)
{
    const agent_batch_t *last = apr_hash_get(queue->dedicated, run_id, 36);

    return last != NULL ? APR_RING_FIRST(&last->place.share->queue) : NULL;
}

static agent_batch_t *or_null(const agent_share_t *share, agent_batch_t *batch)
{
    return batch != APR_RING_SENTINEL(&share->queue, agent_batch_t, place.link)
        ? batch
        : NULL;
}

agent_batch_t *agent_fair_queue_next_of(const agent_batch_t *batch)
{
    return or_null(batch->place.share, APR_RING_NEXT(batch, place.link));
}

agent_batch_t *agent_fair_queue_previous_of(const agent_batch_t *batch)
{
    return or_null(batch->place.share, APR_RING_PREV(batch, place.link));
}

const char *agent_fair_queue_deployment(const agent_batch_t *batch)
{
    return batch->place.share->owner->id;
}

void agent_fair_queue_enter_shared(agent_batch_queue_t *queue,
                                   agent_batch_t *batch)
{
    batch->place.number = ++queue->fair.made;
    APR_RING_INSERT_TAIL(&queue->fair.shared, batch, agent_batch_t, place.link);
}

void agent_fair_queue_enter(agent_batch_queue_t *queue, agent_batch_t *batch,
                            const char *deployment_id, agent_batch_t *later)
{
    agent_share_t *share = find_run(queue, batch, deployment_id);

    APR_RING_INSERT_BEFORE(
        later != NULL
            ? later
            : APR_RING_SENTINEL(&share->queue, agent_batch_t, place.link),
        batch, place.link);
    batch->place.share = share;
    for (; share->owner != NULL; share = share->owner) {
        if (share->batches++ == 0) {
            begin_waiting(&queue->fair, share);
        }
    }
}

/* The time since the batch was sent; at least 1, so that attempts that take no
 * time are taken in turn too. No statement takes longer than the limit of the
 * output connection: the supervisor was stopped. */
static void charge(const agent_batch_queue_t *queue, const agent_batch_t *batch)
{
    apr_interval_time_t used = queue->context->now - batch->sent_at;
    apr_interval_time_t limit = agent_context_longest_statement(queue->context);
    agent_share_t *share = batch->place.share;

    used = AGENT_MIN(used, limit);
    used = AGENT_MAX(used, 1);
    for (; share->owner != NULL; share = share->owner) {
        share->tag += used;
        share->owner->rest += used;
        share->owner->time += share->owner->rest / share->owner->active;
        share->owner->rest %= share->owner->active;
    }
}

void agent_fair_queue_leave(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    agent_share_t *share = batch->place.share;

    APR_RING_REMOVE(batch, place.link);
    if (!batch->is_dedicated) {
        return;
    }
    if (batch->is_sent) {
        charge(queue, batch);
    }
    while (share->owner != NULL) {
        agent_share_t *owner = share->owner;

        if (--share->batches == 0) {
            end_waiting(share);
        }
        /* It may forget the share. */
        sweep(&queue->fair, owner);
        share = owner;
    }
}

/* ---- choice ---- */

apr_time_t agent_fair_queue_due(const agent_batch_queue_t *queue,
                                const agent_batch_t *batch)
{
    apr_time_t due = batch->is_sealed ? queue->context->now : batch->due_at;

    return AGENT_MAX(due, batch->retry_at);
}

/* Whether the batch is to be sent before the other one, of another run. */
static bool precedes(const agent_batch_queue_t *queue,
                     const agent_batch_t *batch, const agent_batch_t *other)
{
    const agent_share_t *share = batch->place.share;
    const agent_share_t *others = other->place.share;
    apr_time_t now = queue->context->now;
    apr_time_t due = agent_fair_queue_due(queue, batch);
    apr_time_t other_due = agent_fair_queue_due(queue, other);

    if (due > now || other_due > now) {
        return due < other_due;
    }
    while (share->owner != others->owner) {
        share = share->owner;
        others = others->owner;
    }
    if (share->tag != others->tag) {
        return share->tag < others->tag;
    }
    return share->level == AGENT_SHARE_RUN ? share->entered < others->entered
                                           : share->entered > others->entered;
}

agent_batch_t *agent_fair_queue_first_shared(const agent_batch_queue_t *queue)
{
    return APR_RING_EMPTY(&queue->fair.shared, agent_batch_t, place.link)
        ? NULL
        : APR_RING_FIRST(&queue->fair.shared);
}

/* Shared batches are sent in order. One of which lines still move waits. */
static agent_batch_t *next_shared(const agent_batch_queue_t *queue)
{
    agent_batch_t *batch = agent_fair_queue_first_shared(queue);

    if (batch != NULL && batch->is_sent) {
        batch = APR_RING_NEXT(batch, place.link);
    }
    return batch
                != APR_RING_SENTINEL(&queue->fair.shared, agent_batch_t,
                                     place.link)
            && !queue->is_moving
        ? batch
        : NULL;
}

static agent_batch_t *next_dedicated(const agent_batch_queue_t *queue)
{
    const agent_batch_t *shared = agent_fair_queue_first_shared(queue);
    agent_batch_t *best = NULL;
    const agent_share_t *share;

    AGENT_RING_EACH(share, &queue->fair.runs, agent_share_t, link)
    {
        agent_batch_t *batch = APR_RING_FIRST(&share->queue);

        if (!batch->is_sent
            && (shared == NULL || shared->place.number > batch->place.after)
            && (best == NULL || precedes(queue, batch, best))) {
            best = batch;
        }
    }
    return best;
}

agent_batch_t *agent_fair_queue_next(const agent_batch_queue_t *queue,
                                     bool is_dedicated)
{
    return is_dedicated ? next_dedicated(queue) : next_shared(queue);
}

void agent_fair_queue_send(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    const agent_share_t *share = batch->place.share;

    batch->is_sealed = true;
    batch->is_sent = true;
    batch->sent_at = queue->context->now;
    for (; share != NULL && share->owner != NULL; share = share->owner) {
        if (share->owner->time < share->tag) {
            share->owner->time = share->tag;
        }
    }
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

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
#include "batch.h"

/* Idle shares that are looked at for each batch that leaves, at each level: one
 * may become idle with it, so they become fewer. */
#define SWEPT 2

static void init_share(agent_fair_share_t *share, agent_fair_share_t *owner)
{
    memset(share, 0, sizeof(*share));
    share->owner = owner;
    APR_RING_INIT(&share->queue, agent_batch_t, link);
    APR_RING_INIT(&share->idle, agent_fair_share_t, link);
}

void agent_fair_queue_init(agent_fair_queue_t *queue,
                           const agent_context_t *context,
                           const agent_account_map_t *accounts,
                           const agent_faulty_table_t *faulty)
{
    queue->context = context;
    queue->accounts = accounts;
    queue->faulty = faulty;
    init_share(&queue->root, NULL);
    for (int i = 0; i < AGENT_FAIR_LEVELS; i++) {
        queue->shares[i] = apr_hash_make(context->pool);
    }
    APR_RING_INIT(&queue->runs, agent_fair_share_t, link);
    APR_RING_INIT(&queue->free, agent_fair_share_t, link);
    queue->sequence = 0;
}

bool agent_fair_queue_is_empty(const agent_fair_queue_t *queue)
{
    return queue->root.active == 0;
}

/* ---- shares ---- */

static agent_fair_share_t *make_share(agent_fair_queue_t *queue,
                                      agent_fair_share_t *owner,
                                      agent_fair_level_t level, const char *id)
{
    agent_fair_share_t *share = APR_RING_FIRST(&queue->free);

    if (APR_RING_EMPTY(&queue->free, agent_fair_share_t, link)) {
        share = apr_palloc(queue->context->pool, sizeof(*share));
    }
    else {
        APR_RING_REMOVE(share, link);
    }
    init_share(share, owner);
    share->level = level;
    apr_cpystrn(share->id, id, sizeof(share->id));
    apr_hash_set(queue->shares[level], share->id, APR_HASH_KEY_STRING, share);
    APR_RING_INSERT_TAIL(&owner->idle, share, agent_fair_share_t, link);
    return share;
}

static agent_fair_share_t *find_share(agent_fair_queue_t *queue,
                                      agent_fair_share_t *owner,
                                      agent_fair_level_t level, const char *id)
{
    agent_fair_share_t *share = apr_hash_get(queue->shares[level], id,
                                             APR_HASH_KEY_STRING);

    return share != NULL ? share : make_share(queue, owner, level, id);
}

static agent_fair_share_t *find_run(agent_fair_queue_t *queue,
                                    const agent_batch_t *batch,
                                    const char *deployment_id)
{
    agent_fair_share_t *root = &queue->root;
    agent_fair_share_t *account = find_share(
        queue, root, AGENT_FAIR_ACCOUNT,
        agent_account_map_find(queue->accounts, deployment_id));
    agent_fair_share_t *deployment = find_share(
        queue, account, AGENT_FAIR_DEPLOYMENT, deployment_id);
    char run_id[AGENT_UUID_SIZE];

    apr_cpystrn(run_id, batch->run_id, sizeof(run_id));
    return find_share(queue, deployment, AGENT_FAIR_RUN, run_id);
}

static void free_share(agent_fair_queue_t *queue, agent_fair_share_t *share)
{
    apr_hash_set(queue->shares[share->level], share->id, APR_HASH_KEY_STRING,
                 NULL);
    APR_RING_INSERT_TAIL(&queue->free, share, agent_fair_share_t, link);
}

/* Frees idle shares whose finish tag has passed. Without any that has batches
 * all begin again, together. */
static void sweep(agent_fair_queue_t *queue, agent_fair_share_t *owner)
{
    for (int i = 0; (i < SWEPT || owner->active == 0)
         && !APR_RING_EMPTY(&owner->idle, agent_fair_share_t, link);
         i++) {
        agent_fair_share_t *share = APR_RING_FIRST(&owner->idle);

        APR_RING_REMOVE(share, link);
        if (owner->active == 0 || share->start_tag <= owner->virtual_time) {
            free_share(queue, share);
        }
        else {
            APR_RING_INSERT_TAIL(&owner->idle, share, agent_fair_share_t, link);
        }
    }
    if (owner->active == 0) {
        owner->virtual_time = owner->remainder = 0;
    }
}

/* Called when the share gets its first batch. Deployments and accounts with
 * batches are members of no ring. */
static void activate(agent_fair_queue_t *queue, agent_fair_share_t *share)
{
    agent_fair_share_t *owner = share->owner;

    APR_RING_REMOVE(share, link);
    if (share->level == AGENT_FAIR_RUN) {
        APR_RING_INSERT_TAIL(&queue->runs, share, agent_fair_share_t, link);
    }
    if (share->start_tag < owner->virtual_time) {
        share->start_tag = owner->virtual_time;
    }
    share->sequence = ++queue->sequence;
    owner->active++;
}

static void deactivate(agent_fair_share_t *share)
{
    if (share->level == AGENT_FAIR_RUN) {
        APR_RING_REMOVE(share, link);
    }
    APR_RING_INSERT_TAIL(&share->owner->idle, share, agent_fair_share_t, link);
    share->owner->active--;
}

/* ---- batches of a run ---- */

static agent_batch_t *or_null(const agent_fair_share_t *share,
                              agent_batch_t *batch)
{
    return batch != APR_RING_SENTINEL(&share->queue, agent_batch_t, link)
        ? batch
        : NULL;
}

/* NULL: the run has no batches, but perhaps an idle share. Called for each
 * line: mostly no run has batches. */
static const agent_fair_share_t *find_active(const agent_fair_queue_t *queue,
                                             const char *run_id)
{
    const agent_fair_share_t *share;

    if (agent_fair_queue_is_empty(queue)) {
        return NULL;
    }
    share = apr_hash_get(queue->shares[AGENT_FAIR_RUN], run_id, 36);
    return share != NULL && share->batches > 0 ? share : NULL;
}

agent_batch_t *agent_fair_queue_first_of(const agent_fair_queue_t *queue,
                                         const char *run_id)
{
    const agent_fair_share_t *share = find_active(queue, run_id);

    return share != NULL ? APR_RING_FIRST(&share->queue) : NULL;
}

agent_batch_t *agent_fair_queue_last_of(const agent_fair_queue_t *queue,
                                        const char *run_id)
{
    const agent_fair_share_t *share = find_active(queue, run_id);

    return share != NULL ? APR_RING_LAST(&share->queue) : NULL;
}

agent_batch_t *agent_fair_queue_next_of(const agent_batch_t *batch)
{
    return or_null(batch->share, APR_RING_NEXT(batch, link));
}

agent_batch_t *agent_fair_queue_previous_of(const agent_batch_t *batch)
{
    return or_null(batch->share, APR_RING_PREV(batch, link));
}

const char *agent_fair_queue_deployment(const agent_batch_t *batch)
{
    return batch->share->owner->id;
}

agent_batch_t *agent_fair_queue_first(const agent_fair_queue_t *queue)
{
    return agent_fair_queue_is_empty(queue)
        ? NULL
        : APR_RING_FIRST(&APR_RING_FIRST(&queue->runs)->queue);
}

void agent_fair_queue_flush(agent_fair_queue_t *queue)
{
    agent_fair_share_t *share;
    agent_batch_t *batch;

    AGENT_RING_EACH(share, &queue->runs, agent_fair_share_t, link)
    {
        AGENT_RING_EACH(batch, &share->queue, agent_batch_t, link)
        {
            batch->due_at = queue->context->now;
        }
    }
}

void agent_fair_queue_insert(agent_fair_queue_t *queue, agent_batch_t *batch,
                             const char *deployment_id, agent_batch_t *later)
{
    agent_fair_share_t *share = find_run(queue, batch, deployment_id);

    APR_RING_INSERT_BEFORE(
        later != NULL ? later
                      : APR_RING_SENTINEL(&share->queue, agent_batch_t, link),
        batch, link);
    batch->share = share;
    for (; share->owner != NULL; share = share->owner) {
        if (share->batches++ == 0) {
            activate(queue, share);
        }
    }
}

void agent_fair_queue_charge_time(const agent_batch_t *batch,
                                  apr_interval_time_t used)
{
    agent_fair_share_t *share = batch->share;

    for (; share->owner != NULL; share = share->owner) {
        share->start_tag += used;
        share->owner->remainder += used;
        share->owner->virtual_time += share->owner->remainder
            / share->owner->active;
        share->owner->remainder %= share->owner->active;
    }
}

/* The time since the batch was sent; at least 1, so that attempts that take no
 * time are taken in turn too. No statement takes longer than the limit of the
 * output connection: the supervisor was stopped. */
void agent_fair_queue_charge(const agent_fair_queue_t *queue,
                             const agent_batch_t *batch)
{
    apr_interval_time_t used = queue->context->now - batch->sent_at;
    apr_interval_time_t limit = agent_context_longest_statement(queue->context);

    used = AGENT_MIN(used, limit);
    agent_fair_queue_charge_time(batch, AGENT_MAX(used, 1));
}

void agent_fair_queue_remove(agent_fair_queue_t *queue, agent_batch_t *batch)
{
    agent_fair_share_t *share = batch->share;

    APR_RING_REMOVE(batch, link);
    if (batch->is_sent) {
        agent_fair_queue_charge(queue, batch);
    }
    while (share->owner != NULL) {
        agent_fair_share_t *owner = share->owner;

        if (--share->batches == 0) {
            deactivate(share);
        }
        /* It may free the share. */
        sweep(queue, owner);
        share = owner;
    }
}

/* ---- choice ---- */

apr_time_t agent_fair_queue_due(const agent_fair_queue_t *queue,
                                const agent_batch_t *batch)
{
    apr_time_t due = agent_batch_due(batch, queue->context->now);
    apr_time_t resume_at = agent_faulty_resume_at(
        queue->faulty, agent_fair_queue_deployment(batch));

    return AGENT_MAX(due, resume_at);
}

/* Whether the batch is to be sent before the other one, of another run. */
static bool precedes(const agent_fair_queue_t *queue,
                     const agent_batch_t *batch, const agent_batch_t *other)
{
    const agent_fair_share_t *share = batch->share;
    const agent_fair_share_t *others = other->share;
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
    if (share->start_tag != others->start_tag) {
        return share->start_tag < others->start_tag;
    }
    return share->level == AGENT_FAIR_RUN ? share->sequence < others->sequence
                                          : share->sequence > others->sequence;
}

agent_batch_t *agent_fair_queue_next(const agent_fair_queue_t *queue,
                                     apr_uint64_t oldest_shared,
                                     agent_fair_queue_test_t *may_send,
                                     const void *part)
{
    agent_batch_t *best = NULL;
    const agent_fair_share_t *share;

    AGENT_RING_EACH(share, &queue->runs, agent_fair_share_t, link)
    {
        agent_batch_t *batch = APR_RING_FIRST(&share->queue);

        if (!batch->is_sent && batch->after < oldest_shared
            && (may_send == NULL || may_send(part, batch))
            && (best == NULL || precedes(queue, batch, best))) {
            best = batch;
        }
    }
    return best;
}

void agent_fair_queue_begin(const agent_batch_t *batch)
{
    const agent_fair_share_t *share = batch->share;

    for (; share->owner != NULL; share = share->owner) {
        share->owner->virtual_time = AGENT_MAX(share->owner->virtual_time,
                                               share->start_tag);
    }
}

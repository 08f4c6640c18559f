/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of output; see batch.h. */
#include "batch.h"

#include <string.h>

#include <apr_strings.h>

#include "backlog.h"
#include "batch_private.h"
#include "fair_queue.h"

/*
 * Events are collected for EVENT_INTERVAL: at most 40 commits a second,
 * whatever the number of tokens. After a pause the first one waits for
 * SHORT_WAIT only, for other events of the same step.
 */
#define EVENT_INTERVAL apr_time_from_msec(25)
#define SHORT_WAIT     apr_time_from_msec(2)
/* A batch of this size is due at once; lines are added until it is sent. */
#define ENOUGH_BYTES ((apr_size_t)64 * 1024)
/* The smallest limit of the weight of a shared batch: 63 short lines. Runs with
 * costly lines have dedicated batches, and a slow commit takes its time however
 * little is saved. */
#define LEAST_WEIGHT ((apr_size_t)512 * 1024)

void agent_batch_init(agent_batch_queue_t *queue,
                      const agent_context_t *context)
{
    queue->context = context;
    APR_RING_INIT(&queue->waiting, agent_batch_t, link);
    queue->dedicated = apr_hash_make(context->pool);
    queue->pace.limit = AGENT_PACE_MOST;
    agent_fair_queue_init(queue);
    agent_backlog_init(queue);
}

bool agent_batch_is_empty(const agent_batch_queue_t *queue)
{
    return APR_RING_EMPTY(&queue->waiting, agent_batch_t, link);
}

apr_size_t agent_batch_weigh(const agent_batch_t *batch)
{
    return agent_pace_weigh(batch->items->nelts,
                            agent_buffer_length(&batch->text));
}

bool agent_batch_is_full(const agent_batch_queue_t *queue)
{
    return queue->shared_bytes >= AGENT_BATCH_MAX_SHARED
        || queue->shared_bytes + queue->dedicated_bytes
        >= AGENT_BATCH_MAX_SHARED + AGENT_BATCH_MAX_DEDICATED;
}

static agent_backlog_kind_t kind_of(const agent_batch_t *batch)
{
    return batch->is_dedicated ? AGENT_BACKLOG_DEDICATED : AGENT_BACKLOG_SHARED;
}

bool agent_batch_has_run(const agent_batch_queue_t *queue, const char *run_id)
{
    const agent_batch_t *batch;

    AGENT_RING_EACH(batch, &queue->waiting, agent_batch_t, link)
    {
        const agent_batch_run_t *run = apr_hash_get(batch->runs, run_id, 36);

        if (run != NULL && !run->is_dead) {
            return true;
        }
    }
    return false;
}

void agent_batch_flush(agent_batch_queue_t *queue)
{
    agent_batch_t *batch;

    AGENT_RING_EACH(batch, &queue->waiting, agent_batch_t, link)
    {
        batch->due_at = queue->context->now;
    }
}

void agent_batch_flush_run(agent_batch_queue_t *queue, const char *run_id)
{
    agent_batch_t *batch;

    AGENT_RING_EACH(batch, &queue->waiting, agent_batch_t, link)
    {
        if (apr_hash_get(batch->runs, run_id, 36) != NULL) {
            batch->due_at = queue->context->now;
        }
    }
}

static agent_batch_t *make_batch(agent_batch_queue_t *queue)
{
    agent_batch_t *batch;
    apr_pool_t *pool;

    apr_pool_create(&pool, queue->context->pool);
    batch = apr_pcalloc(pool, sizeof(*batch));
    batch->pool = pool;
    batch->due_at = AGENT_CLOCK_NEVER;
    batch->items = apr_array_make(pool, 16, sizeof(agent_item_t));
    batch->runs = apr_hash_make(pool);
    agent_buffer_init(&batch->text, pool);
    return batch;
}

agent_batch_t *agent_batch_make_dedicated(agent_batch_queue_t *queue,
                                          const char *run_id,
                                          const char *deployment_id,
                                          agent_batch_t *next)
{
    agent_batch_t *batch = make_batch(queue);
    const char *key = apr_pmemdup(batch->pool, run_id, 36);

    batch->is_dedicated = true;
    batch->run_id = key;
    batch->due_at = queue->context->now;
    APR_RING_INSERT_BEFORE(next, batch, link);
    agent_fair_queue_enter(queue, batch, deployment_id);
    return batch;
}

void agent_batch_enter_dedicated(agent_batch_queue_t *queue,
                                 agent_batch_t *batch)
{
    /* The hash keeps the first key it gets, and the key lives in the batch:
     * remove the entry before setting the new one. */
    apr_hash_set(queue->dedicated, batch->run_id, 36, NULL);
    apr_hash_set(queue->dedicated, batch->run_id, 36, batch);
}

static void leave_dedicated(agent_batch_queue_t *queue,
                            const agent_batch_t *batch)
{
    if (apr_hash_get(queue->dedicated, batch->run_id, 36) == batch) {
        apr_hash_set(queue->dedicated, batch->run_id, 36, NULL);
    }
}

/* The lines of the batch are no longer counted. */
static void uncount(agent_batch_queue_t *queue, const agent_batch_t *batch)
{
    apr_hash_index_t *at;

    for (at = apr_hash_first(batch->pool, batch->runs); at != NULL;
         at = apr_hash_next(at)) {
        const agent_batch_run_t *run = apr_hash_this_val(at);

        agent_backlog_remove(queue, run->deployment_id, kind_of(batch),
                             run->line_bytes);
    }
}

void agent_batch_drop(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    if (batch->is_dedicated) {
        leave_dedicated(queue, batch);
        agent_fair_queue_leave(queue, batch);
    }
    uncount(queue, batch);
    APR_RING_REMOVE(batch, link);
    apr_pool_destroy(batch->pool);
}

void agent_batch_clear(agent_batch_queue_t *queue)
{
    while (!agent_batch_is_empty(queue)) {
        agent_batch_drop(queue, APR_RING_FIRST(&queue->waiting));
    }
}

/* A dedicated batch is cut when it is sent (batch_split.h). */
static bool has_room(const agent_batch_queue_t *queue,
                     const agent_batch_t *batch, apr_size_t length)
{
    apr_size_t most = batch->is_dedicated ? AGENT_BATCH_DEDICATED_BYTES
                                          : AGENT_BATCH_MAX_BYTES;
    apr_size_t weight = agent_pace_limit(&queue->pace);

    weight = weight > LEAST_WEIGHT ? weight : LEAST_WEIGHT;
    return !batch->is_sealed && batch->items->nelts < AGENT_BATCH_MAX_ITEMS
        && agent_buffer_length(&batch->text) + length <= most
        && (batch->is_dedicated
            || agent_batch_weigh(batch) + AGENT_PACE_LINE + length <= weight);
}

static agent_batch_t *last_shared(const agent_batch_queue_t *queue)
{
    agent_batch_t *batch = APR_RING_LAST(&queue->waiting);

    for (; batch != APR_RING_SENTINEL(&queue->waiting, agent_batch_t, link);
         batch = APR_RING_PREV(batch, link)) {
        if (!batch->is_dedicated) {
            return batch;
        }
    }
    return NULL;
}

/* The batch waits for earlier lines of its run, so these become due now. */
static agent_batch_t *open_dedicated(agent_batch_queue_t *queue,
                                     const agent_lease_t *lease)
{
    const char *run_id = lease->key.run_id;
    agent_batch_t *shared = last_shared(queue);
    agent_batch_t *batch = agent_batch_make_dedicated(
        queue, run_id, lease->deployment_id,
        APR_RING_SENTINEL(&queue->waiting, agent_batch_t, link));

    if (shared != NULL && apr_hash_get(shared->runs, run_id, 36) != NULL) {
        shared->due_at = queue->context->now;
    }
    agent_batch_enter_dedicated(queue, batch);
    return batch;
}

static agent_batch_t *open_shared(agent_batch_queue_t *queue)
{
    agent_batch_t *batch = make_batch(queue);

    batch->place.number = ++queue->fair.made;
    APR_RING_INSERT_TAIL(&queue->waiting, batch, agent_batch_t, link);
    return batch;
}

static agent_batch_t *find_dedicated(const agent_batch_queue_t *queue,
                                     const char *run_id)
{
    return apr_hash_get(queue->dedicated, run_id, 36);
}

/* The batch to which an item of that length of that run is added. */
static agent_batch_t *find_open(agent_batch_queue_t *queue,
                                const agent_lease_t *lease, apr_size_t length)
{
    const char *run_id = lease->key.run_id;
    bool is_dedicated = agent_backlog_find_kind(queue, lease, length)
        == AGENT_BACKLOG_DEDICATED;
    agent_batch_t *batch = is_dedicated ? find_dedicated(queue, run_id)
                                        : last_shared(queue);

    if (batch != NULL && has_room(queue, batch, length)) {
        return batch;
    }
    if (batch != NULL) {
        batch->is_sealed = true;
    }
    return is_dedicated ? open_dedicated(queue, lease) : open_shared(queue);
}

/* The run's part of the batch, which begins with a copy of run. */
static agent_batch_run_t *find_part(const agent_batch_t *batch,
                                    const agent_batch_run_t *run)
{
    agent_batch_run_t *known = apr_hash_get(batch->runs, run->key.run_id,
                                            sizeof(run->key.run_id));

    if (known == NULL) {
        known = apr_pmemdup(batch->pool, run, sizeof(*run));
        known->part = NULL;
        known->line_bytes = known->weight = 0;
        apr_hash_set(batch->runs, known->key.run_id, sizeof(known->key.run_id),
                     known);
    }
    return known;
}

void agent_batch_append(agent_batch_queue_t *queue, agent_batch_t *batch,
                        const agent_batch_run_t *run, const agent_item_t *from,
                        const char *text)
{
    agent_batch_run_t *known = find_part(batch, run);
    agent_item_t *item = apr_array_push(batch->items);

    known->line_bytes += from->length + 1;
    known->weight += agent_pace_weigh(1, from->length + 1);
    known->last_seq = run->last_seq;
    known->last_record = run->last_record;
    known->has_end |= run->has_end;
    *item = *from;
    item->run = known;
    item->offset = agent_buffer_length(&batch->text);
    agent_buffer_append(&batch->text, text, from->length);
    agent_buffer_append(&batch->text, "\n", 1);
    agent_backlog_add(queue, run->deployment_id, kind_of(batch),
                      item->length + 1);
}

/* When a batch with an item of that kind is due. */
static apr_time_t due_of(const agent_batch_queue_t *queue,
                         agent_item_kind_t kind)
{
    apr_time_t next = queue->sent_at + EVENT_INTERVAL;
    apr_time_t soon = queue->context->now + SHORT_WAIT;

    switch (kind) {
    case AGENT_ITEM_METADATA:
        return queue->context->now + EVENT_INTERVAL;
    case AGENT_ITEM_EVENT:
    case AGENT_ITEM_TASK:
    case AGENT_ITEM_RECORD:
        return next > soon ? next : soon;
    case AGENT_ITEM_CHECKPOINT:
        /* A short run has ended by then: one commit instead of two. */
        return soon;
    default:
        return queue->context->now;
    }
}

void agent_batch_add(agent_batch_queue_t *queue, agent_lease_t *lease,
                     agent_item_kind_t kind, const char *line,
                     apr_size_t length, apr_int64_t ack)
{
    bool is_end = kind == AGENT_ITEM_END || kind == AGENT_ITEM_FAILURE;
    agent_batch_run_t run = {.key = lease->key, .has_end = is_end};
    agent_item_t item = {.kind = kind, .ack = ack, .length = length};
    agent_batch_t *batch = find_open(queue, lease, length);
    apr_time_t due = due_of(queue, kind);

    memcpy(run.deployment_id, lease->deployment_id, sizeof(run.deployment_id));
    memcpy(run.thread_id, lease->thread_id, sizeof(run.thread_id));
    lease->next_seq += kind == AGENT_ITEM_EVENT || kind == AGENT_ITEM_METADATA;
    lease->records.sent += kind == AGENT_ITEM_RECORD;
    run.last_seq = item.seq = lease->next_seq - 1;
    run.last_record = lease->records.sent;
    lease->credit.unsaved += length + 1;
    agent_batch_append(queue, batch, &run, &item, line);
    if (ack >= 0 || agent_buffer_length(&batch->text) >= ENOUGH_BYTES) {
        due = queue->context->now;
    }
    batch->due_at = due < batch->due_at ? due : batch->due_at;
}

void agent_batch_drop_if_dead(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    for (int i = 0; i < batch->items->nelts; i++) {
        if (!APR_ARRAY_IDX(batch->items, i, agent_item_t).run->is_dead) {
            return;
        }
    }
    agent_batch_drop(queue, batch);
}

void agent_batch_forget(agent_batch_queue_t *queue, const char *run_id,
                        apr_array_header_t *dropped)
{
    agent_batch_t *batch;
    agent_batch_t *next;

    AGENT_RING_EACH_SAFE(batch, next, &queue->waiting, agent_batch_t, link)
    {
        agent_batch_run_t *run = apr_hash_get(batch->runs, run_id, 36);

        if (run != NULL && !batch->is_sent) {
            /* A batch has items of one lease of a run only. */
            batch->is_sealed = true;
            batch->has_dead = true;
            run->is_dead = true;
            if (dropped != NULL) {
                APR_ARRAY_PUSH(dropped, agent_lease_key_t) = run->key;
            }
            agent_batch_drop_if_dead(queue, batch);
        }
    }
}

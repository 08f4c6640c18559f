/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting what runners say; see batch.h. batch_send.c sends it. */
#include "batch.h"

#include <string.h>

#include <apr_strings.h>

#include "state.h"

/*
 * Events alone wait for one another so long: 40 commits a second whatever the
 * number of tokens. After a pause the first one waits only for what the same
 * step says next.
 */
#define EVENT_INTERVAL apr_time_from_msec(25)
#define SHORT_WAIT     apr_time_from_msec(2)
/* So much needs no more company; it may still get it until it is sent. */
#define ENOUGH_BYTES ((apr_size_t)64 * 1024)

void agent_batch_init(agent_supervisor_t *sv)
{
    APR_RING_INIT(&sv->batches.waiting, agent_batch_t, link);
}

bool agent_batch_is_empty(const agent_supervisor_t *sv)
{
    return APR_RING_EMPTY(&sv->batches.waiting, agent_batch_t, link);
}

bool agent_batch_is_full(const agent_supervisor_t *sv)
{
    return sv->batches.bytes >= AGENT_BATCH_MAX_WAITING;
}

apr_uint64_t agent_batch_oldest(const agent_supervisor_t *sv)
{
    return agent_batch_is_empty(sv)
        ? sv->batches.last_number + 1
        : APR_RING_FIRST(&sv->batches.waiting)->number;
}

apr_uint64_t agent_batch_hurry(agent_supervisor_t *sv)
{
    if (!agent_batch_is_empty(sv)) {
        APR_RING_LAST(&sv->batches.waiting)->due_at = sv->now;
    }
    return sv->batches.last_number;
}

agent_batch_t *agent_batch_make(agent_supervisor_t *sv)
{
    agent_batch_t *batch;
    apr_pool_t *pool;

    apr_pool_create(&pool, sv->pool);
    batch = apr_pcalloc(pool, sizeof(*batch));
    batch->pool = pool;
    batch->due_at = AGENT_NEVER;
    batch->items = apr_array_make(pool, 16, sizeof(agent_item_t));
    batch->runs = apr_hash_make(pool);
    agent_buffer_init(&batch->text, pool);
    return batch;
}

void agent_batch_drop(agent_supervisor_t *sv, agent_batch_t *batch)
{
    sv->batches.bytes -= agent_buffer_length(&batch->text);
    APR_RING_REMOVE(batch, link);
    apr_pool_destroy(batch->pool);
}

void agent_batch_clear(agent_supervisor_t *sv)
{
    while (!agent_batch_is_empty(sv)) {
        agent_batch_drop(sv, APR_RING_FIRST(&sv->batches.waiting));
    }
}

/* The batch that takes an item of that length, and of that lease's run. */
static agent_batch_t *find_open(agent_supervisor_t *sv, apr_size_t length)
{
    agent_batch_queue_t *queue = &sv->batches;
    agent_batch_t *batch = NULL;

    if (!agent_batch_is_empty(sv)) {
        batch = APR_RING_LAST(&queue->waiting);
        if (batch->items->nelts >= AGENT_BATCH_MAX_ITEMS
            || agent_buffer_length(&batch->text) + length
                > AGENT_BATCH_MAX_BYTES) {
            batch->is_sealed = true;
        }
    }
    if (batch == NULL || batch->is_sealed) {
        batch = agent_batch_make(sv);
        batch->number = ++queue->last_number;
        APR_RING_INSERT_TAIL(&queue->waiting, batch, agent_batch_t, link);
    }
    return batch;
}

void agent_batch_open_item(agent_batch_t *batch, const agent_batch_run_t *run)
{
    agent_batch_run_t *known = apr_hash_get(batch->runs, run->key.run_id,
                                            sizeof(run->key.run_id));
    agent_item_t *item = apr_array_push(batch->items);

    if (known == NULL) {
        known = apr_pmemdup(batch->pool, run, sizeof(*run));
        known->part = NULL;
        apr_hash_set(batch->runs, known->key.run_id, sizeof(known->key.run_id),
                     known);
    }
    known->last_seq = run->last_seq;
    known->has_end |= run->has_end;
    agent_buffer_append(&batch->text,
                        agent_buffer_length(&batch->text) > 0 ? "," : "[", 1);
    item->run = known;
    item->offset = agent_buffer_length(&batch->text);
}

void agent_batch_close_item(agent_supervisor_t *sv, agent_batch_t *batch)
{
    agent_item_t *item = &APR_ARRAY_IDX(batch->items, batch->items->nelts - 1,
                                        agent_item_t);

    item->length = agent_buffer_length(&batch->text) - item->offset;
    sv->batches.bytes += item->length + 1;
}

/* When a batch with an item of that kind is to be sent at the latest. */
static apr_time_t due_of(const agent_supervisor_t *sv, agent_item_kind_t kind)
{
    apr_time_t next = sv->batches.sent_at + EVENT_INTERVAL;
    apr_time_t soon = sv->now + SHORT_WAIT;

    switch (kind) {
    case AGENT_ITEM_METADATA:
        return sv->now + EVENT_INTERVAL;
    case AGENT_ITEM_EVENT:
        return next > soon ? next : soon;
    default:
        return sv->now;
    }
}

/*
 * The line with our members behind its own. Of equal ones the database takes
 * the last, so a runner cannot say these in our place.
 */
static void append_item(agent_batch_t *batch, const agent_lease_t *lease,
                        const char *seq, const char *line, apr_size_t length)
{
    /* An object that is not empty, perhaps with space behind it. */
    while (line[length - 1] != '}') {
        length--;
    }
    agent_buffer_append(&batch->text, line, length - 1);
    agent_buffer_print(
        &batch->text, ",\"a\":\"%s\",\"r\":\"%.36s\",\"e\":%d,\"s\":%s}",
        lease->account_id, lease->key.run_id, (int)lease->key.epoch, seq);
}

void agent_batch_add(agent_supervisor_t *sv, agent_lease_t *lease,
                     agent_item_kind_t kind, const char *line,
                     apr_size_t length)
{
    bool is_event = kind == AGENT_ITEM_EVENT || kind == AGENT_ITEM_METADATA;
    agent_batch_run_t run = {.key = lease->key,
                             .has_end = kind == AGENT_ITEM_END};
    agent_batch_t *batch = find_open(sv, length);
    apr_time_t due = due_of(sv, kind);
    char seq[32] = "null";

    memcpy(run.thread_id, lease->thread_id, sizeof(run.thread_id));
    if (is_event) {
        lease->next_seq++;
    }
    run.last_seq = lease->next_seq - 1;
    if (kind != AGENT_ITEM_CHECKPOINT) {
        apr_snprintf(seq, sizeof(seq), "%" APR_INT64_T_FMT, run.last_seq);
    }
    agent_batch_open_item(batch, &run);
    append_item(batch, lease, seq, line, length);
    agent_batch_close_item(sv, batch);
    if (agent_buffer_length(&batch->text) >= ENOUGH_BYTES) {
        due = sv->now;
    }
    batch->due_at = due < batch->due_at ? due : batch->due_at;
}

static void drop_if_dead(agent_supervisor_t *sv, agent_batch_t *batch)
{
    for (int i = 0; i < batch->items->nelts; i++) {
        if (!APR_ARRAY_IDX(batch->items, i, agent_item_t).run->is_dead) {
            return;
        }
    }
    agent_batch_drop(sv, batch);
}

/* An end that is not sent any more is not waited for either. */
static void drop_lease(agent_supervisor_t *sv, const agent_lease_key_t *key,
                       apr_int32_t epoch)
{
    agent_lease_t *lease = agent_lease_find(sv, key);

    if (epoch != -1 && lease != NULL && lease->state == AGENT_LEASE_ENDED) {
        agent_lease_set_state(sv, lease, AGENT_LEASE_GONE);
    }
}

void agent_batch_forget(agent_supervisor_t *sv, const char *run_id,
                        apr_int32_t epoch)
{
    agent_batch_t *batch;
    agent_batch_t *next;

    AGENT_RING_EACH_SAFE(batch, next, &sv->batches.waiting, agent_batch_t, link)
    {
        agent_batch_run_t *run = apr_hash_get(batch->runs, run_id, 36);
        bool in_flight = sv->batches.is_sent
            && batch == APR_RING_FIRST(&sv->batches.waiting);

        if (run != NULL && run->key.epoch != epoch && !in_flight) {
            /* A batch holds one lease of a run only. */
            batch->is_sealed = true;
            batch->has_dead = true;
            run->is_dead = true;
            drop_lease(sv, &run->key, epoch);
            drop_if_dead(sv, batch);
        }
    }
}

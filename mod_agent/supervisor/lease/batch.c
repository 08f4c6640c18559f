/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting what runners say; see batch.h. batch_send.c sends it. */
#include "batch.h"

#include <string.h>

#include <apr_strings.h>

#include "../instance.h"

/*
 * Events alone wait for one another so long: 40 commits a second whatever the
 * number of tokens. After a pause the first one waits only for what the same
 * step says next.
 */
#define EVENT_INTERVAL apr_time_from_msec(25)
#define SHORT_WAIT     apr_time_from_msec(2)
/* So much is sent at once; more may still join it until it is. */
#define ENOUGH_BYTES ((apr_size_t)64 * 1024)

void agent_batch_init(agent_supervisor_t *sv)
{
    APR_RING_INIT(&sv->batches.waiting, agent_batch_t, link);
    sv->batches.lanes = apr_hash_make(sv->pool);
}

bool agent_batch_is_empty(const agent_supervisor_t *sv)
{
    return APR_RING_EMPTY(&sv->batches.waiting, agent_batch_t, link);
}

bool agent_batch_is_full(const agent_supervisor_t *sv)
{
    const agent_batch_queue_t *queue = &sv->batches;

    return queue->shared_bytes >= AGENT_BATCH_MAX_SHARED
        || queue->shared_bytes + queue->lane_bytes
        >= AGENT_BATCH_MAX_SHARED + AGENT_BATCH_MAX_LANES;
}

/* The sum that a batch is counted in. */
static apr_size_t *find_sum(agent_supervisor_t *sv, const agent_batch_t *batch)
{
    return batch->is_lane ? &sv->batches.lane_bytes : &sv->batches.shared_bytes;
}

bool agent_batch_has_run(const agent_supervisor_t *sv, const char *run_id)
{
    const agent_batch_t *batch;

    AGENT_RING_EACH(batch, &sv->batches.waiting, agent_batch_t, link)
    {
        const agent_batch_run_t *run = apr_hash_get(batch->runs, run_id, 36);

        if (run != NULL && !run->is_dead) {
            return true;
        }
    }
    return false;
}

void agent_batch_hurry(agent_supervisor_t *sv)
{
    agent_batch_t *batch;

    AGENT_RING_EACH(batch, &sv->batches.waiting, agent_batch_t, link)
    {
        batch->due_at = sv->now;
    }
}

static agent_batch_t *make_batch(agent_supervisor_t *sv)
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

agent_batch_t *agent_batch_make_lane(agent_supervisor_t *sv, const char *run_id,
                                     agent_batch_t *next)
{
    agent_batch_t *batch = make_batch(sv);
    const char *key = apr_pmemdup(batch->pool, run_id, 36);

    batch->is_lane = true;
    batch->lane_key = key;
    batch->due_at = sv->now;
    APR_RING_INSERT_BEFORE(next, batch, link);
    return batch;
}

void agent_batch_enter_lane(agent_supervisor_t *sv, agent_batch_t *batch)
{
    /* The key lives as long as the batch that it leads to. */
    apr_hash_set(sv->batches.lanes, batch->lane_key, 36, NULL);
    apr_hash_set(sv->batches.lanes, batch->lane_key, 36, batch);
}

static void leave_lane(agent_supervisor_t *sv, const agent_batch_t *batch)
{
    if (apr_hash_get(sv->batches.lanes, batch->lane_key, 36) == batch) {
        apr_hash_set(sv->batches.lanes, batch->lane_key, 36, NULL);
    }
}

void agent_batch_drop(agent_supervisor_t *sv, agent_batch_t *batch)
{
    if (batch->is_lane) {
        leave_lane(sv, batch);
    }
    *find_sum(sv, batch) -= agent_buffer_length(&batch->text);
    APR_RING_REMOVE(batch, link);
    apr_pool_destroy(batch->pool);
}

void agent_batch_clear(agent_supervisor_t *sv)
{
    while (!agent_batch_is_empty(sv)) {
        agent_batch_drop(sv, APR_RING_FIRST(&sv->batches.waiting));
    }
}

static bool has_room(const agent_batch_t *batch, apr_size_t length)
{
    apr_size_t most = batch->is_lane ? AGENT_BATCH_LANE_BYTES
                                     : AGENT_BATCH_MAX_BYTES;

    return !batch->is_sealed && batch->items->nelts < AGENT_BATCH_MAX_ITEMS
        && agent_buffer_length(&batch->text) + length <= most;
}

static agent_batch_t *last_shared(const agent_supervisor_t *sv)
{
    agent_batch_t *batch = APR_RING_LAST(&sv->batches.waiting);

    for (;
         batch != APR_RING_SENTINEL(&sv->batches.waiting, agent_batch_t, link);
         batch = APR_RING_PREV(batch, link)) {
        if (!batch->is_lane) {
            return batch;
        }
    }
    return NULL;
}

/* A lane waits for what its run said before, which is therefore sent now. */
static agent_batch_t *open_lane(agent_supervisor_t *sv, const char *run_id)
{
    agent_batch_t *shared = last_shared(sv);
    agent_batch_t *lane = agent_batch_make_lane(
        sv, run_id,
        APR_RING_SENTINEL(&sv->batches.waiting, agent_batch_t, link));

    if (shared != NULL && apr_hash_get(shared->runs, run_id, 36) != NULL) {
        shared->due_at = sv->now;
    }
    agent_batch_enter_lane(sv, lane);
    return lane;
}

static agent_batch_t *open_shared(agent_supervisor_t *sv)
{
    agent_batch_t *batch = make_batch(sv);

    APR_RING_INSERT_TAIL(&sv->batches.waiting, batch, agent_batch_t, link);
    return batch;
}

static agent_batch_t *find_lane(const agent_supervisor_t *sv,
                                const char *run_id)
{
    return apr_hash_count(sv->batches.lanes) > 0
        ? apr_hash_get(sv->batches.lanes, run_id, 36)
        : NULL;
}

static bool needs_lane(const agent_supervisor_t *sv, const agent_lease_t *lease,
                       apr_size_t length)
{
    return length > AGENT_BATCH_LONG_LINE || lease->is_refused
        || find_lane(sv, lease->key.run_id) != NULL;
}

bool agent_batch_takes(const agent_supervisor_t *sv, const agent_lease_t *lease,
                       apr_size_t length)
{
    if (length < lease->credit.granted) {
        return true;
    }
    return length <= AGENT_BATCH_LONG_LINE
        ? lease->credit.unsaved < AGENT_BATCH_MAX_RUN
        : agent_credit_has_room(sv);
}

/* The batch that takes an item of that length of that run. */
static agent_batch_t *find_open(agent_supervisor_t *sv,
                                const agent_lease_t *lease, apr_size_t length)
{
    const char *run_id = lease->key.run_id;
    bool is_lane = needs_lane(sv, lease, length);
    agent_batch_t *batch = is_lane ? find_lane(sv, run_id) : last_shared(sv);

    if (batch != NULL && has_room(batch, length)) {
        return batch;
    }
    if (batch != NULL) {
        batch->is_sealed = true;
    }
    return is_lane ? open_lane(sv, run_id) : open_shared(sv);
}

void agent_batch_open_item(agent_batch_t *batch, const agent_batch_run_t *run,
                           apr_size_t sent)
{
    agent_batch_run_t *known = apr_hash_get(batch->runs, run->key.run_id,
                                            sizeof(run->key.run_id));
    agent_item_t *item = apr_array_push(batch->items);

    if (known == NULL) {
        known = apr_pmemdup(batch->pool, run, sizeof(*run));
        known->part = NULL;
        known->sent = 0;
        apr_hash_set(batch->runs, known->key.run_id, sizeof(known->key.run_id),
                     known);
    }
    known->sent += sent;
    known->last_seq = run->last_seq;
    known->has_end |= run->has_end;
    agent_buffer_append(&batch->text,
                        agent_buffer_length(&batch->text) > 0 ? "," : "[", 1);
    item->run = known;
    item->sent = sent;
    item->offset = agent_buffer_length(&batch->text);
}

void agent_batch_close_item(agent_supervisor_t *sv, agent_batch_t *batch)
{
    agent_item_t *item = &APR_ARRAY_IDX(batch->items, batch->items->nelts - 1,
                                        agent_item_t);

    item->length = agent_buffer_length(&batch->text) - item->offset;
    *find_sum(sv, batch) += item->length + 1;
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
    agent_batch_t *batch = find_open(sv, lease, length);
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
    lease->credit.unsaved += length + 1;
    agent_batch_open_item(batch, &run, length + 1);
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

        if (run != NULL && run->key.epoch != epoch && !batch->is_sent) {
            /* A batch holds one lease of a run only. */
            batch->is_sealed = true;
            batch->has_dead = true;
            run->is_dead = true;
            drop_lease(sv, &run->key, epoch);
            drop_if_dead(sv, batch);
        }
    }
}

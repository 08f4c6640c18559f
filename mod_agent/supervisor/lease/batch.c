/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of output; see batch.h. */
#include "batch.h"

#include <string.h>

#include <apr_strings.h>

#include "../base/order.h"
#include "batch_private.h"
#include "batch_send.h"

/*
 * Events are collected for EVENT_INTERVAL: at most 40 commits a second,
 * whatever the number of tokens. After a pause the first one waits for
 * SHORT_WAIT only, for other events of the same step.
 */
#define EVENT_INTERVAL apr_time_from_msec(25)
#define SHORT_WAIT     apr_time_from_msec(2)
/* A batch of this size is due at once; lines are added until it is sent. */
#define ENOUGH_BYTES ((apr_size_t)64 * 1024)

void agent_batch_init(agent_batch_queue_t *queue,
                      const agent_context_t *context)
{
    queue->context = context;
    APR_RING_INIT(&queue->shared, agent_batch_t, link);
    queue->parts = apr_hash_make(context->pool);
    queue->batch_size.limit = AGENT_BATCH_SIZE_MAX;
    agent_account_map_init(&queue->accounts, context->pool);
    agent_faulty_init(&queue->faulty, context);
    agent_fair_queue_init(&queue->dedicated, context, &queue->accounts,
                          &queue->faulty);
    agent_backlog_init(&queue->backlogs, context, &queue->accounts);
}

bool agent_batch_is_empty(const agent_batch_queue_t *queue)
{
    return APR_RING_EMPTY(&queue->shared, agent_batch_t, link)
        && agent_fair_queue_is_empty(&queue->dedicated);
}

bool agent_batch_is_full(const agent_batch_queue_t *queue)
{
    apr_size_t shared = agent_backlog_sum(&queue->backlogs,
                                          AGENT_BACKLOG_SHARED);
    apr_size_t dedicated = agent_backlog_sum(&queue->backlogs,
                                             AGENT_BACKLOG_DEDICATED);

    return shared >= AGENT_BATCH_MAX_SHARED
        || shared + dedicated
        >= AGENT_BATCH_MAX_SHARED + AGENT_BATCH_MAX_DEDICATED;
}

static agent_backlog_kind_t kind_of(const agent_batch_t *batch)
{
    return batch->is_dedicated ? AGENT_BACKLOG_DEDICATED : AGENT_BACKLOG_SHARED;
}

bool agent_batch_has_run(const agent_batch_queue_t *queue, const char *run_id)
{
    return apr_hash_get(queue->parts, run_id, 36) != NULL
        || agent_fair_queue_first_of(&queue->dedicated, run_id) != NULL;
}

void agent_batch_flush(agent_batch_queue_t *queue)
{
    agent_batch_t *batch;

    AGENT_RING_EACH(batch, &queue->shared, agent_batch_t, link)
    {
        batch->due_at = queue->context->now;
    }
    agent_fair_queue_flush(&queue->dedicated);
}

/* ---- the batches of a run ---- */

/* The hash keeps the first key it gets, and the key lives in the value: removes
 * the entry before setting the new one. */
static void replace(apr_hash_t *hash, const char *run_id, const void *value)
{
    apr_hash_set(hash, run_id, 36, NULL);
    apr_hash_set(hash, run_id, 36, value);
}

static agent_batch_run_t *last_shared(const agent_batch_queue_t *queue,
                                      const char *run_id)
{
    return apr_hash_get(queue->parts, run_id, 36);
}

void agent_batch_flush_run(agent_batch_queue_t *queue, const char *run_id)
{
    const agent_batch_run_t *run = last_shared(queue, run_id);

    for (; run != NULL; run = run->earlier) {
        run->batch->due_at = queue->context->now;
    }
}

static void enter_shared(agent_batch_queue_t *queue, agent_batch_run_t *run)
{
    run->earlier = last_shared(queue, run->key.run_id);
    run->memory_before = 0;
    if (run->earlier != NULL) {
        run->earlier->later = run;
        run->memory_before = run->earlier->memory_before + run->earlier->memory;
    }
    replace(queue->parts, run->key.run_id, run);
}

/* The part of a shared batch is no longer sent. */
static void leave_shared(agent_batch_queue_t *queue, agent_batch_run_t *run)
{
    if (run->later != NULL) {
        run->later->earlier = run->earlier;
    }
    else {
        apr_hash_set(queue->parts, run->key.run_id, 36, NULL);
        if (run->earlier != NULL) {
            replace(queue->parts, run->earlier->key.run_id, run->earlier);
        }
    }
    if (run->earlier != NULL) {
        run->earlier->later = run->later;
    }
    if (run->is_moving) {
        queue->moving--;
    }
    else {
        agent_backlog_remove(&queue->backlogs, run->deployment_id,
                             AGENT_BACKLOG_COST, run->cost);
    }
}

/* ---- making and dropping ---- */

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
                                          const agent_batch_run_t *run,
                                          agent_batch_t *later,
                                          apr_uint64_t after)
{
    agent_batch_t *batch = make_batch(queue);

    batch->is_dedicated = true;
    batch->run_id = apr_pmemdup(batch->pool, run->key.run_id, 36);
    batch->due_at = queue->context->now;
    batch->after = after;
    agent_fair_queue_insert(&queue->dedicated, batch, run->deployment_id,
                            later);
    agent_backlog_add(&queue->backlogs, run->deployment_id,
                      AGENT_BACKLOG_DEDICATED, AGENT_BATCH_OWN_BYTES);
    return batch;
}

/* The lines of the batch are no longer counted, nor found. */
static void subtract_lines(agent_batch_queue_t *queue,
                           const agent_batch_t *batch)
{
    apr_hash_index_t *at;

    for (at = apr_hash_first(batch->pool, batch->runs); at != NULL;
         at = apr_hash_next(at)) {
        agent_batch_run_t *run = apr_hash_this_val(at);

        agent_backlog_remove(&queue->backlogs, run->deployment_id,
                             kind_of(batch), run->memory);
        agent_backlog_remove(&queue->backlogs, run->deployment_id,
                             AGENT_BACKLOG_MEDIUM, run->medium_bytes);
        if (!batch->is_dedicated && !run->is_discarded) {
            leave_shared(queue, run);
        }
    }
}

void agent_batch_remove(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    queue->open = queue->open == batch ? NULL : queue->open;
    subtract_lines(queue, batch);
    if (batch->is_dedicated) {
        agent_backlog_remove(&queue->backlogs,
                             agent_fair_queue_deployment(batch),
                             AGENT_BACKLOG_DEDICATED, AGENT_BATCH_OWN_BYTES);
        agent_fair_queue_remove(&queue->dedicated, batch);
    }
    else {
        APR_RING_REMOVE(batch, link);
    }
    agent_batch_set_sent(queue, batch, false);
    apr_pool_destroy(batch->pool);
}

void agent_batch_clear(agent_batch_queue_t *queue)
{
    agent_batch_t *batch;

    while ((batch = agent_batch_send_first_shared(queue)) != NULL
           || (batch = agent_fair_queue_first(&queue->dedicated)) != NULL) {
        agent_batch_remove(queue, batch);
    }
}

/* A dedicated batch is split when it is sent (batch_split.h). */
bool agent_batch_has_room(const agent_batch_queue_t *queue,
                          const agent_batch_t *batch, int lines,
                          apr_size_t bytes)
{
    apr_size_t most = batch->is_dedicated ? AGENT_BATCH_DEDICATED_BYTES
                                          : AGENT_BATCH_MAX_BYTES;
    apr_size_t cost = agent_batch_size_limit(&queue->batch_size);

    cost = AGENT_MAX(cost, AGENT_BATCH_SIZE_SHARED_MIN);
    return !batch->is_sealed
        && batch->items->nelts + lines <= AGENT_BATCH_MAX_ITEMS
        && agent_buffer_length(&batch->text) + bytes <= most
        && (batch->is_dedicated
            || batch->cost + agent_batch_size_cost(lines, bytes) <= cost);
}

static agent_batch_t *open_shared(agent_batch_queue_t *queue)
{
    agent_batch_t *batch = make_batch(queue);

    queue->open = batch;
    batch->number = ++queue->last_number;
    APR_RING_INSERT_TAIL(&queue->shared, batch, agent_batch_t, link);
    return batch;
}

static agent_batch_t *find_shared(agent_batch_queue_t *queue, apr_size_t length)
{
    if (queue->open != NULL
        && agent_batch_has_room(queue, queue->open, 1, length)) {
        return queue->open;
    }
    if (queue->open != NULL) {
        queue->open->is_sealed = true;
    }
    return open_shared(queue);
}

/* The batch waits for earlier lines of its run, so these become due now. Lines
 * that move from there go before it. */
static agent_batch_t *find_dedicated(agent_batch_queue_t *queue,
                                     const agent_batch_run_t *run,
                                     apr_size_t length)
{
    agent_batch_t *batch = agent_fair_queue_last_of(&queue->dedicated,
                                                    run->key.run_id);
    const agent_batch_run_t *shared = last_shared(queue, run->key.run_id);
    apr_uint64_t after = shared != NULL ? shared->batch->number : 0;

    if (batch != NULL && batch->after >= after
        && agent_batch_has_room(queue, batch, 1, length)) {
        return batch;
    }
    if (shared != NULL) {
        shared->batch->due_at = queue->context->now;
    }
    return agent_batch_make_dedicated(queue, run, NULL, after);
}

static void count_memory(agent_batch_queue_t *queue, const agent_batch_t *batch,
                         agent_batch_run_t *run, apr_size_t bytes)
{
    run->memory += bytes;
    agent_backlog_add(&queue->backlogs, run->deployment_id, kind_of(batch),
                      bytes);
}

/* The run's part of the batch, which begins with a copy of run. */
static agent_batch_run_t *find_part(agent_batch_queue_t *queue,
                                    agent_batch_t *batch,
                                    const agent_batch_run_t *run)
{
    agent_batch_run_t *known = apr_hash_get(batch->runs, run->key.run_id,
                                            sizeof(run->key.run_id));

    if (known == NULL) {
        known = apr_pmemdup(batch->pool, run, sizeof(*run));
        known->batch = batch;
        known->earlier = known->later = NULL;
        known->line_bytes = known->medium_bytes = known->cost = 0;
        known->memory = 0;
        known->items = 0;
        known->first = known->last = -1;
        known->is_moving = known->is_counted = false;
        apr_hash_set(batch->runs, known->key.run_id, sizeof(known->key.run_id),
                     known);
        if (!batch->is_dedicated) {
            enter_shared(queue, known);
            count_memory(queue, batch, known, AGENT_BATCH_PART_BYTES);
        }
    }
    return known;
}

/* Adds an item of the run with that text; offset and run are set here. */
static void append(agent_batch_queue_t *queue, agent_batch_t *batch,
                   const agent_batch_run_t *run, const agent_item_t *from,
                   const char *text)
{
    agent_batch_run_t *known = find_part(queue, batch, run);
    agent_item_t *item = apr_array_push(batch->items);
    apr_size_t cost = agent_batch_size_cost(1, from->length + 1);

    known->line_bytes += from->length + 1;
    known->cost += cost;
    batch->cost += cost;
    known->last_seq = run->last_seq;
    known->last_record = run->last_record;
    known->has_end |= run->has_end;
    known->is_counted |= !agent_item_is_event(from->kind);
    *item = *from;
    item->run = known;
    item->next = -1;
    if (known->items++ == 0) {
        known->first = batch->items->nelts - 1;
    }
    else {
        agent_batch_item(batch, known->last)->next = batch->items->nelts - 1;
    }
    known->last = batch->items->nelts - 1;
    batch->remaining++;
    item->offset = agent_buffer_length(&batch->text);
    agent_buffer_append(&batch->text, text, from->length);
    agent_buffer_append(&batch->text, "\n", 1);
    count_memory(queue, batch, known,
                 item->length + 1 + AGENT_BATCH_ITEM_BYTES);
    if (batch->is_dedicated && item->length < AGENT_CREDIT_MEDIUM) {
        known->medium_bytes += item->length + 1;
        agent_backlog_add(&queue->backlogs, run->deployment_id,
                          AGENT_BACKLOG_MEDIUM, item->length + 1);
    }
    if (!batch->is_dedicated && !known->is_moving) {
        agent_backlog_add(&queue->backlogs, run->deployment_id,
                          AGENT_BACKLOG_COST, cost);
    }
}

void agent_batch_copy(agent_batch_queue_t *queue, agent_batch_t *to,
                      const agent_batch_run_t *run, const agent_batch_t *from,
                      int number)
{
    const agent_item_t *item = agent_batch_item(from, number);

    append(queue, to, run, item, agent_buffer_text(&from->text) + item->offset);
}

agent_backlog_kind_t agent_batch_find_kind(const agent_batch_queue_t *queue,
                                           const agent_lease_t *lease,
                                           apr_size_t length)
{
    const agent_backlog_table_t *backlogs = &queue->backlogs;
    bool is_dedicated = length > AGENT_BATCH_LONG_LINE || lease->is_refused
        || agent_batch_size_is_dedicated(&lease->batch_size,
                                         queue->context->now)
        || agent_fair_queue_first_of(&queue->dedicated, lease->key.run_id)
            != NULL
        || agent_faulty_is(&queue->faulty, lease->deployment_id)
        || (agent_backlog_is_slow(backlogs, lease->deployment_id)
            && agent_backlog_is_any_slow(backlogs));

    return is_dedicated ? AGENT_BACKLOG_DEDICATED : AGENT_BACKLOG_SHARED;
}

/* Returns when a batch with an item of this kind is due. */
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
        return AGENT_MAX(next, soon);
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
    agent_batch_run_t run = {.key = lease->key,
                             .has_end = agent_item_is_end(kind)};
    agent_item_t item = {.kind = kind, .ack = ack, .length = length};
    apr_time_t due = due_of(queue, kind);
    agent_batch_t *batch;

    memcpy(run.deployment_id, lease->deployment_id, sizeof(run.deployment_id));
    memcpy(run.thread_id, lease->thread_id, sizeof(run.thread_id));
    lease->next_seq += agent_item_is_event(kind);
    lease->records.sent += kind == AGENT_ITEM_RECORD;
    run.last_seq = item.seq = lease->next_seq - 1;
    run.last_record = lease->records.sent;
    lease->credit.unsaved += length + 1;
    batch = agent_batch_find_kind(queue, lease, length)
            == AGENT_BACKLOG_DEDICATED
        ? find_dedicated(queue, &run, length)
        : find_shared(queue, length);
    append(queue, batch, &run, &item, line);
    if (ack >= 0 || agent_buffer_length(&batch->text) >= ENOUGH_BYTES) {
        due = queue->context->now;
    }
    batch->due_at = AGENT_MIN(due, batch->due_at);
}

void agent_batch_discard_run(agent_batch_queue_t *queue, agent_batch_t *batch,
                             agent_batch_run_t *run)
{
    batch->is_sealed = true;
    batch->remaining -= run->items;
    batch->cost -= run->cost;
    if (!batch->is_dedicated) {
        leave_shared(queue, run);
    }
    run->is_discarded = true;
}

bool agent_batch_remove_if_empty(agent_batch_queue_t *queue,
                                 agent_batch_t *batch)
{
    if (batch->remaining > 0) {
        return false;
    }
    agent_batch_remove(queue, batch);
    return true;
}

static void discard_part(agent_batch_queue_t *queue, agent_batch_t *batch,
                         agent_batch_run_t *run, int epoch,
                         apr_array_header_t *discarded)
{
    if (batch->is_sent || (epoch != 0 && run->key.epoch != epoch)) {
        return;
    }
    /* A batch has items of one lease of a run only. */
    if (discarded != NULL) {
        APR_ARRAY_PUSH(discarded, agent_lease_key_t) = run->key;
    }
    agent_batch_discard_run(queue, batch, run);
    agent_batch_remove_if_empty(queue, batch);
}

void agent_batch_discard(agent_batch_queue_t *queue, const char *run_id,
                         int epoch, apr_array_header_t *discarded)
{
    agent_batch_run_t *run = last_shared(queue, run_id);
    agent_batch_t *batch = agent_fair_queue_first_of(&queue->dedicated, run_id);
    agent_batch_t *next;

    while (run != NULL) {
        agent_batch_run_t *earlier = run->earlier;

        discard_part(queue, run->batch, run, epoch, discarded);
        run = earlier;
    }
    for (; batch != NULL; batch = next) {
        next = agent_fair_queue_next_of(batch);
        discard_part(queue, batch, apr_hash_get(batch->runs, run_id, 36), epoch,
                     discarded);
    }
}

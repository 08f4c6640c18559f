/* SPDX-License-Identifier: Apache-2.0 */
/*
 * save_batch: sending what runners said, and what to do when the database
 * does not take it. A batch that is refused is split by run; the run whose
 * part is refused then ends in error, the others are saved.
 */
#include "batch.h"

#include <string.h>

#include "state.h"

/* After so many failures nobody can explain, it is the data. */
#define MAX_FAILURES 3

static apr_time_t due_batch(agent_supervisor_t *sv)
{
    agent_batch_queue_t *queue = &sv->batches;
    agent_batch_t *first = APR_RING_FIRST(&queue->waiting);
    apr_time_t due;

    if (!agent_worker_is_live(sv) || agent_batch_is_empty(sv)) {
        return AGENT_NEVER;
    }
    due = first->is_sealed ? sv->now : first->due_at;
    return due > queue->retry_at ? due : queue->retry_at;
}

/* The batch's text without the items of runs that are not sent any more. */
static const char *copy_live_items(const agent_batch_t *batch, apr_pool_t *pool)
{
    const char *text = agent_buffer_text(&batch->text);
    agent_buffer_t live;

    agent_buffer_init(&live, pool);
    for (int i = 0; i < batch->items->nelts; i++) {
        const agent_item_t *item = &APR_ARRAY_IDX(batch->items, i,
                                                  agent_item_t);

        if (!item->run->is_dead) {
            agent_buffer_append(&live,
                                agent_buffer_length(&live) > 0 ? "," : "[", 1);
            agent_buffer_append(&live, text + item->offset, item->length);
        }
    }
    agent_buffer_append(&live, "]", 2);
    return agent_buffer_text(&live);
}

static apr_status_t send_batch(agent_supervisor_t *sv,
                               agent_database_t *database, agent_error_t **err)
{
    agent_batch_t *batch = APR_RING_FIRST(&sv->batches.waiting);
    apr_pool_t *pool = database->scratch;
    const char *params[2];

    params[0] = sv->worker.id;
    if (batch->has_dead) {
        params[1] = copy_live_items(batch, pool);
    }
    else {
        /* Behind the content, not part of it: it may be sent again. */
        memcpy(agent_buffer_reserve(&batch->text, 2), "]", 2);
        params[1] = agent_buffer_text(&batch->text);
    }
    batch->is_sealed = true;
    sv->batches.is_sent = true;
    sv->batches.sent_at = sv->now;
    return agent_db_send(database->db, AGENT_SQL_SAVE_BATCH, params, err, pool);
}

static void settle_saved(agent_supervisor_t *sv, const agent_batch_run_t *run,
                         const char *run_id)
{
    agent_lease_t *lease = agent_lease_find(sv, &run->key);

    agent_notify_add(sv, run_id, run->thread_id, run->has_end);
    if (lease == NULL) {
        return;
    }
    lease->saved_seq = run->last_seq;
    if (run->has_end && lease->state == AGENT_LEASE_ENDED) {
        agent_lease_set_state(sv, lease, AGENT_LEASE_GONE);
        agent_claim_wake(sv);
    }
}

static void settle_fenced(agent_supervisor_t *sv, const agent_batch_run_t *run)
{
    agent_lease_t *lease = agent_lease_find(sv, &run->key);

    if (lease != NULL && lease->state != AGENT_LEASE_GONE) {
        agent_lease_lose(sv, lease);
    }
}

static void receive_batch(agent_supervisor_t *sv,
                          const agent_db_result_t *result)
{
    agent_batch_t *batch = APR_RING_FIRST(&sv->batches.waiting);

    sv->batches.is_sent = false;
    for (int row = 0; row < agent_db_rows(result); row++) {
        const char *run_id = agent_db_value(result, row, 0);
        const char *outcome = agent_db_value(result, row, 1);
        const agent_batch_run_t *run = apr_hash_get(batch->runs, run_id, 36);

        if (run == NULL || run->is_dead) {
            continue;
        }
        if (strcmp(outcome, "saved") == 0) {
            settle_saved(sv, run, run_id);
        }
        else {
            settle_fenced(sv, run);
        }
    }
    agent_batch_drop(sv, batch);
}

/* One batch for each run, in the place of the batch that held them all. */
static void split_batch(agent_supervisor_t *sv, agent_batch_t *batch)
{
    const char *text = agent_buffer_text(&batch->text);

    for (int i = 0; i < batch->items->nelts; i++) {
        agent_item_t *item = &APR_ARRAY_IDX(batch->items, i, agent_item_t);
        agent_batch_run_t *run = item->run;

        if (run->is_dead) {
            continue;
        }
        if (run->part == NULL) {
            run->part = agent_batch_make(sv);
            run->part->number = batch->number;
            run->part->is_sealed = true;
            APR_RING_INSERT_BEFORE(batch, run->part, link);
        }
        agent_batch_open_item(run->part, run);
        agent_buffer_append(&run->part->text, text + item->offset,
                            item->length);
        agent_batch_close_item(sv, run->part);
    }
    agent_batch_drop(sv, batch);
}

/* The database refuses what this run said: it ends here. */
static void refuse_run(agent_supervisor_t *sv, const agent_lease_key_t *key)
{
    agent_lease_t *lease = agent_lease_find(sv, key);

    agent_report_write(sv, AGENT_LOG_ERR, "AGT0341", 0,
                       "the database refused the output of run %.36s",
                       key->run_id);
    agent_batch_forget(sv, key->run_id, -1);
    if (lease == NULL || lease->state == AGENT_LEASE_RELEASING
        || lease->state == AGENT_LEASE_GONE) {
        return;
    }
    if (lease->is_refused) {
        /* Not even the end in error is taken. */
        agent_lease_release(sv, lease, true, "its output was refused");
        return;
    }
    lease->is_refused = true;
    lease->next_seq = lease->saved_seq + 1;
    if (lease->runner != NULL) {
        agent_lease_cancel(sv, lease, AGENT_CAUSE_LOST);
    }
    agent_lease_fail(sv, lease, "error", "invalid_output",
                     "The run's output cannot be stored.");
}

static void refuse_batch(agent_supervisor_t *sv, agent_batch_t *batch)
{
    if (apr_hash_count(batch->runs) > 1) {
        agent_report_write(sv, AGENT_LOG_WARNING, "AGT0344", 0,
                           "a batch of %u runs was refused; saving them one "
                           "by one",
                           apr_hash_count(batch->runs));
        split_batch(sv, batch);
    }
    else {
        agent_lease_key_t key = APR_ARRAY_IDX(batch->items, 0, agent_item_t)
                                    .run->key;

        /* This batch is the first of those to forget. */
        refuse_run(sv, &key);
    }
}

static void fail_batch(agent_supervisor_t *sv, agent_failure_t failure)
{
    agent_batch_t *batch = APR_RING_FIRST(&sv->batches.waiting);

    sv->batches.is_sent = false;
    sv->batches.retry_at = agent_database_retry_at(sv, failure);
    if (failure == AGENT_FAILURE_OTHER || failure == AGENT_FAILURE_LOST) {
        batch->failures++;
    }
    if (failure == AGENT_FAILURE_DATA
        || (failure == AGENT_FAILURE_OTHER
            && batch->failures >= MAX_FAILURES)) {
        sv->batches.retry_at = sv->now;
        refuse_batch(sv, batch);
    }
    else if (failure == AGENT_FAILURE_LOST && batch->failures >= MAX_FAILURES
             && apr_hash_count(batch->runs) > 1) {
        /* Perhaps it takes too long as a whole. */
        split_batch(sv, batch);
    }
}

const agent_operation_t agent_batch_operation = {
    "save_batch", due_batch, send_batch, receive_batch, fail_batch};

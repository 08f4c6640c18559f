/* SPDX-License-Identifier: Apache-2.0 */
/* save_batch; see save.h. */
#include "save.h"

#include <stdlib.h>
#include <string.h>

#include "../base/order.h"
#include "../lease/batch_move.h"
#include "../lease/batch_send.h"
#include "../lease/batch_split.h"
#include "../runner/run/ack.h"
#include "../runner/run/run_end.h"
#include "save_failure.h"
#include "save_params.h"

/* The output connection is awaited for this time before dedicated batches use
 * the bulk connection: most losses take less. */
#define OUTPUT_WAIT apr_time_from_sec(5)

/* Between two lines that wait for resources and are made due, while those that
 * were do not succeed. */
#define HASTEN_INTERVAL apr_time_from_sec(1)

enum { COL_RUN, COL_OUTCOME, COL_PROMOTED, COL_ELAPSED };

static apr_time_t due_batch(void *part)
{
    const agent_save_t *save = part;
    const agent_batch_queue_t *queue = &save->runs->batches;
    const agent_batch_t *batch = agent_worker_is_live(save->worker)
        ? agent_batch_send_next_shared(queue)
        : NULL;

    return batch != NULL ? agent_batch_due(batch, queue->context->now)
                         : AGENT_CLOCK_NEVER;
}

/*
 * The bulk connection is for others too: a line that needs longer than a second
 * waits for the output connection. After output that had failed before has lost
 * a connection, output that has not failed is sent first: while each statement
 * ends its connection, all wait for the pauses before it is made again, and one
 * that is saved ends these. It is not always first: it may fail as well, and
 * line after line of a runner would keep back one that was lost by chance.
 */
static agent_batch_t *next_dedicated(const agent_save_t *save, bool is_on_bulk)
{
    const agent_batch_queue_t *queue = &save->runs->batches;
    bool prefers_unfailed = !is_on_bulk && save->output->losses > 0
        && save->had_failed;
    agent_batch_t *batch = prefers_unfailed
        ? agent_batch_send_next_unfailed(queue)
        : NULL;

    if (batch != NULL
        && agent_fair_queue_due(&queue->dedicated, batch)
            <= queue->context->now) {
        return batch;
    }
    return is_on_bulk ? agent_batch_send_next_brief(queue, &save->runs->leases)
                      : agent_batch_send_next_dedicated(queue);
}

/* Only while the control connection is up: after a crash it has got the notice,
 * or is made again as well. */
static apr_time_t due_on(const agent_save_t *save, bool is_on_bulk)
{
    const agent_batch_queue_t *queue = &save->runs->batches;
    const agent_batch_t *batch = agent_worker_is_live(save->worker)
            && queue->sent_dedicated == NULL && save->control->lost_at == 0
        ? next_dedicated(save, is_on_bulk)
        : NULL;

    return batch != NULL ? agent_fair_queue_due(&queue->dedicated, batch)
                         : AGENT_CLOCK_NEVER;
}

static apr_time_t due_dedicated(void *part)
{
    return due_on(part, false);
}

/* While the output connection cannot be made, the ends of runs with dedicated
 * batches have to be saved nevertheless. */
static apr_time_t due_on_bulk(void *part)
{
    const agent_save_t *save = part;
    apr_time_t lost_at = agent_database_lost_at(save->output);
    apr_time_t due = lost_at != AGENT_CLOCK_NEVER ? due_on(save, true)
                                                  : AGENT_CLOCK_NEVER;

    return due == AGENT_CLOCK_NEVER ? due
                                    : AGENT_MAX(due, lost_at + OUTPUT_WAIT);
}

static const agent_statement_t save_batch = {
    .name = "agent_save_batch",
    .params = AGENT_SAVE_PARAMS,
    .sql = "select run_id, outcome, promoted, elapsed_usec "
           "from agent.save_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
           "$11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, "
           "$24, $25, $26, $27, $28, $29, $30, $31, $32, $33, "
           "$34, $35, $36, $37)"};

static apr_status_t send_batch(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    const agent_save_t *save = part;
    agent_batch_queue_t *queue = &save->runs->batches;
    agent_batch_t *batch = agent_batch_send_next_shared(queue);
    agent_db_params_t params;

    if (batch == NULL) {
        /* The function `due` has found one. */
        abort();
    }
    queue->sent_at = queue->context->now;
    agent_save_params_make(&params, save->worker->id, &save->runs->leases,
                           batch, database->scratch);
    agent_batch_send_begin(queue, batch);
    return agent_db_send_params(database->db, &save_batch, &params, err,
                                database->scratch);
}

/* The time limits of one transaction. */
static const agent_statement_t set_timeouts = {
    .params = 2,
    .sql = "select pg_catalog.set_config('statement_timeout', $1, true), "
           "pg_catalog.set_config('lock_timeout', $2, true)"};

static void print_timeouts(const char *timeouts[2], const agent_save_t *save,
                           const agent_batch_t *batch, apr_pool_t *pool)
{
    timeouts[0] = agent_session_limit(
        agent_save_limit(save->runs->context, batch), pool);
    timeouts[1] = agent_session_limit(agent_save_lock_limit(save->runs, batch),
                                      pool);
}

static apr_status_t send_dedicated(void *part, agent_database_t *database,
                                   agent_error_t **err)
{
    agent_save_t *save = part;
    agent_batch_queue_t *queue = &save->runs->batches;
    bool is_on_bulk = database != save->output;
    agent_batch_t *batch = next_dedicated(save, is_on_bulk);
    apr_pool_t *pool = database->scratch;
    const agent_lease_t *lease;
    const char *timeouts[2];
    agent_db_params_t params;

    if (batch == NULL) {
        /* The function `due` has found one. */
        abort();
    }
    lease = agent_save_find_lease(save->runs, batch);
    if (lease != NULL) {
        batch = agent_batch_split_by_cost(
            queue, batch, agent_batch_size_limit(&lease->batch_size));
    }
    save->sent_on = database;
    batch->has_long_limit = !is_on_bulk && agent_save_needs_long_limit(lease);
    database->limit = agent_save_limit(save->runs->context, batch);
    print_timeouts(timeouts, save, batch, pool);
    agent_save_params_make(&params, save->worker->id, &save->runs->leases,
                           batch, pool);
    agent_batch_send_begin(queue, batch);
    return agent_db_send_both(database->db, &set_timeouts, timeouts,
                              &save_batch, &params, err, pool);
}

/* has_next: a run that waited for one of the batch is ready. */
static void settle_saved(agent_save_t *save, const agent_batch_run_t *run,
                         const char *run_id, bool has_next)
{
    agent_lease_t *lease = agent_lease_find(&save->runs->leases, &run->key);

    agent_notify_add(save->notify, run_id, run->thread_id, run->has_end);
    if (run->has_end) {
        agent_schedule_webhooks(save->schedule);
    }
    if (lease == NULL) {
        return;
    }
    lease->saved_seq = run->last_seq;
    lease->saved_batches += run->is_counted;
    lease->records.saved = run->last_record;
    agent_credit_save(lease, run->line_bytes);
    agent_runner_request_save(&save->runs->requests, lease);
    if (run->has_end && lease->state == AGENT_LEASE_ENDED) {
        agent_run_end_set_state(save->runs, lease, AGENT_LEASE_GONE);
        /* A pool that had no room for all ready runs is due as it is. */
        agent_pools_claim_after(save->runners->pools, save->runners->pool_count,
                                lease->deployment_id, has_next);
    }
}

/*
 * The output that follows is discarded at once: if the database had lost the
 * claim, the next one has the same epoch, and would save it without this. If it
 * had lost output instead, the run is still leased to this worker, which no
 * longer knows it and gives it back.
 */
static void settle_fenced(const agent_save_t *save,
                          const agent_batch_run_t *run)
{
    agent_runs_t *runs = save->runs;
    agent_lease_t *lease = agent_lease_find(&runs->leases, &run->key);

    agent_schedule_search(save->schedule);

    if (lease != NULL && lease->state != AGENT_LEASE_GONE) {
        agent_run_end_lose(runs, lease);
    }
    agent_batch_discard(&runs->batches, run->key.run_id, run->key.epoch, NULL);
}

/* Replies to the records of a committed batch that want it. */
static void reply_to_records(const agent_runs_t *runs,
                             const agent_batch_t *batch)
{
    for (int i = 0; i < batch->items->nelts; i++) {
        const agent_item_t *item = agent_batch_item(batch, i);
        agent_lease_t *lease = item->ack >= 0 && item->run->is_saved
            ? agent_lease_find(&runs->leases, &item->run->key)
            : NULL;

        if (lease != NULL) {
            agent_ack_reply(lease, item->ack);
        }
    }
}

/* A little output took long: in a shared batch it would delay others. */
static bool is_very_slow(apr_size_t cost, apr_interval_time_t elapsed)
{
    return cost <= AGENT_BATCH_SIZE_FIRST
        && elapsed >= 2 * AGENT_BATCH_SIZE_TARGET;
}

/* The batch in flight is saved. Only its execution counts: a slow commit, or a
 * standby or network that is slow, takes its time however little is saved. */
static void measure(agent_runs_t *runs, agent_batch_t *batch,
                    apr_interval_time_t elapsed)
{
    apr_size_t cost = batch->cost;
    agent_lease_t *lease;

    if (!batch->is_dedicated) {
        agent_batch_size_save(&runs->batches.batch_size, cost, elapsed);
        agent_batch_move_mark_slow(&runs->batches, &runs->leases, batch,
                                   elapsed);
        return;
    }
    if (is_very_slow(cost, elapsed)) {
        agent_faulty_slow(&runs->batches.faulty,
                          agent_fair_queue_deployment(batch), batch->sent_at);
    }
    lease = agent_save_find_lease(runs, batch);
    if (lease != NULL) {
        agent_batch_size_save(&lease->batch_size, cost, elapsed);
        agent_batch_size_extend(&lease->batch_size, cost, elapsed,
                                runs->context->now);
    }
}

/*
 * Only the longest line counts: many short ones show no room for a long one.
 * Ends count not at all: they add no rows of output, and a call that changes
 * nothing has no other line.
 */
static void note_saved(agent_save_t *save, const agent_batch_t *batch)
{
    apr_size_t longest = 0;

    for (int i = 0; i < batch->items->nelts; i++) {
        const agent_item_t *item = agent_batch_item(batch, i);

        if (item->run->is_saved && !agent_item_is_end(item->kind)) {
            longest = AGENT_MAX(longest, item->length + 1);
        }
    }
    if (longest > 0) {
        agent_patience_save(&save->saved, agent_batch_size_cost(1, longest),
                            save->runs->context->now);
    }
}

/*
 * Output was saved: there are resources for as much again, and for little. A
 * shortage ends for all lines soon after it has for one, since each that has
 * waited makes two others due; else one a second is tried.
 */
static void hasten_waiting(agent_save_t *save, apr_size_t cost, bool has_waited)
{
    apr_time_t now = save->runs->context->now;
    int count = has_waited ? 2 : now - save->hastened_at >= HASTEN_INTERVAL;

    for (int i = 0; i < count; i++) {
        agent_batch_send_hasten(&save->runs->batches,
                                AGENT_MAX(cost, AGENT_BATCH_SIZE_FIRST));
        save->hastened_at = now;
    }
}

static void receive_any(agent_save_t *save, agent_batch_t *batch,
                        const agent_db_result_t *result)
{
    apr_size_t cost = batch->cost;
    bool has_waited = batch->patience.failures > 0;
    bool is_any_saved = false;

    if (agent_db_rows(result) > 0) {
        measure(save->runs, batch, agent_db_integer(result, 0, COL_ELAPSED, 0));
    }
    for (int row = 0; row < agent_db_rows(result); row++) {
        const char *run_id = agent_db_value(result, row, COL_RUN);
        const char *outcome = agent_db_value(result, row, COL_OUTCOME);
        agent_batch_run_t *run = apr_hash_get(batch->runs, run_id, 36);

        if (run == NULL || run->is_discarded) {
            continue;
        }
        run->is_saved = strcmp(outcome, "saved") == 0;
        is_any_saved |= run->is_saved;
        if (run->is_saved) {
            settle_saved(save, run, run_id,
                         agent_db_value(result, row, COL_PROMOTED)[0] == 't');
        }
        else {
            settle_fenced(save, run);
        }
    }
    note_saved(save, batch);
    reply_to_records(save->runs, batch);
    agent_batch_remove(&save->runs->batches, batch);
    if (is_any_saved) {
        hasten_waiting(save, cost, has_waited);
    }
}

static void receive_batch(void *part, const agent_db_result_t *result)
{
    agent_save_t *save = part;

    save->lost_shared.sent_at = 0;
    receive_any(save, save->runs->batches.sent_shared, result);
}

static void receive_dedicated(void *part, const agent_db_result_t *result)
{
    agent_save_t *save = part;

    save->lost_dedicated.sent_at = 0;
    receive_any(save, save->runs->batches.sent_dedicated, result);
}

const agent_operation_t agent_batch_operation = {
    "save_batch", due_batch, send_batch, receive_batch,
    agent_save_failure_take_shared};

const agent_operation_t agent_dedicated_batch_operation = {
    "save_batch", due_dedicated, send_dedicated, receive_dedicated,
    agent_save_failure_take_dedicated};

const agent_operation_t agent_bulk_batch_operation = {
    "save_batch", due_on_bulk, send_dedicated, receive_dedicated,
    agent_save_failure_take_dedicated};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements that do not save the output; see save_failure.h. Only a line alone
 * ends its run: batches are split by run, and by halves, until it is found. The
 * table in ../lease/README.md says how each failure of it counts.
 */
#include "save_failure.h"

#include <string.h>

#include <apr_strings.h>

#include "../../core/backoff.h"
#include "../base/order.h"
#include "../lease/batch_send.h"
#include "../lease/batch_split.h"
#include "../runner/run/run_end.h"
#include "refusal.h"
#include "retry.h"

/* After this many failures of any kind the data is assumed to be the cause. */
#define MAX_FAILURES 3
/* The first pause of a line alone that failed for a reason outside of it, which
 * may have passed at once, or after a while; the pauses double. Those for locks
 * end earlier. */
#define BRIEF_WAIT        apr_time_from_msec(50)
#define WAIT              apr_time_from_sec(1)
#define LONGEST_WAIT      AGENT_PATIENCE_ATTEMPT
#define LONGEST_LOCK_WAIT apr_time_from_sec(1)
/* About the longest pause before a lost connection is made again; after it the
 * database is away, which is not the fault of a run. */
#define LONGEST_RECONNECT apr_time_from_sec(1)

/* The database refuses the output of this run: it ends in error. */
static void refuse_run(agent_runs_t *runs, const agent_lease_key_t *key,
                       const agent_refusal_t *why)
{
    agent_lease_t *lease = agent_lease_find(&runs->leases, key);

    agent_report_write(runs->context, AGENT_LOG_ERR, "AGT0341", 0,
                       "the database refused the output of run %.36s: %s",
                       key->run_id, why->code);
    agent_batch_discard(&runs->batches, key->run_id, 0, NULL);
    if (lease == NULL || lease->state == AGENT_LEASE_GONE) {
        return;
    }
    if (lease->is_refused || lease->state == AGENT_LEASE_RELEASING) {
        /* The end in error was refused too; or the run would be requeued, and
         * its failures counted from the start. */
        agent_run_end_give_up(runs, lease, why->code, why->message);
        return;
    }
    lease->is_refused = true;
    lease->next_seq = lease->saved_seq + 1;
    if (lease->group != NULL) {
        agent_run_end_cancel(runs, lease, AGENT_CAUSE_LOST);
    }
    agent_run_end_fail(runs, lease, "error", why->code, why->message);
}

/* The row of one of its runs is locked. */
static void mark_locked(agent_runs_t *runs, const agent_batch_t *batch)
{
    apr_hash_index_t *i;

    for (i = apr_hash_first(NULL, batch->runs); i != NULL;
         i = apr_hash_next(i)) {
        const agent_batch_run_t *run = apr_hash_this_val(i);
        agent_lease_t *lease = agent_lease_find(&runs->leases, &run->key);

        if (lease != NULL) {
            lease->batch_size.lock_waits++;
        }
    }
}

/* To find the run at fault, or the one whose row is locked. */
static void split_shared(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    agent_report_write(queue->context, AGENT_LOG_WARNING, "AGT0344", 0,
                       "a batch of %u runs was not saved; saving them one "
                       "by one",
                       apr_hash_count(batch->runs));
    queue->faulty.splits++;
    agent_batch_split_by_run(queue, batch);
}

/* The server closes all other connections with a notice when a process of it
 * crashes, but the one of that process without. */
static bool has_no_notice(const agent_database_t *database,
                          const agent_batch_t *batch)
{
    return database->crash_reported_at < batch->sent_at;
}

/* Keeps the attempt if its process of the database may have crashed. */
static void keep_loss(agent_save_loss_t *loss, const agent_batch_t *batch,
                      const agent_database_t *database, agent_failure_t failure)
{
    if (failure != AGENT_FAILURE_LOST) {
        loss->sent_at = 0;
    }
    else if (has_no_notice(database, batch)) {
        *loss = (agent_save_loss_t){.sent_at = batch->sent_at,
                                    .number = batch->number,
                                    .key = agent_batch_item(batch, 0)->run->key,
                                    .lines = batch->items->nelts};
    }
}

/* Sending the same batch again would delay the output of all its runs. It is
 * not at fault when another process of the database crashed. */
void agent_save_failure_take_shared(void *part, agent_failure_t failure)
{
    agent_save_t *save = part;
    agent_batch_queue_t *queue = &save->runs->batches;
    agent_batch_t *batch = queue->sent_shared;
    bool has_notice = failure == AGENT_FAILURE_LOST
        && save->control->crash_reported_at >= batch->sent_at;

    agent_batch_send_fail(
        queue, batch, agent_database_retry_at(save->runs->context, failure));
    batch->failures += failure != AGENT_FAILURE_SETUP && !has_notice;
    keep_loss(&save->lost_shared, batch, save->control, failure);
    if (failure == AGENT_FAILURE_LOCK) {
        mark_locked(save->runs, batch);
    }
    if (failure == AGENT_FAILURE_TIMEOUT) {
        agent_batch_size_fail(&queue->batch_size, batch->cost,
                              queue->context->now - batch->sent_at);
    }
    if (agent_refusal_find(failure) != NULL || failure == AGENT_FAILURE_TIMEOUT
        || failure == AGENT_FAILURE_CANCEL || failure == AGENT_FAILURE_LOCK
        || batch->failures >= MAX_FAILURES) {
        split_shared(queue, batch);
    }
}

/* The cost of the first half of the lines: the limit after a failure. */
static apr_size_t half_cost(const agent_batch_t *batch)
{
    apr_size_t cost = 0;

    for (int i = 0; i < batch->items->nelts / 2; i++) {
        cost += agent_batch_size_cost(1,
                                      agent_batch_item(batch, i)->length + 1);
    }
    return cost;
}

/* Limits the next statements of the run to fewer lines: one of these may be at
 * fault. */
static void halve(agent_save_t *save, const agent_batch_t *batch,
                  agent_failure_t failure)
{
    agent_lease_t *lease = agent_save_find_lease(save->runs, batch);

    if (lease != NULL) {
        agent_batch_size_fail(
            &lease->batch_size, 2 * half_cost(batch),
            failure == AGENT_FAILURE_TIMEOUT ? AGENT_BATCH_SIZE_TIMEOUT : 0);
    }
}

/* A line alone failed for a reason that may be outside of it. Returns whether
 * it has for so long that its run is to end. */
static bool pause_line(const agent_save_t *save, agent_batch_t *batch,
                       agent_failure_t failure)
{
    agent_context_t *context = save->runs->context;
    bool is_long = failure == AGENT_FAILURE_CANCEL
        || failure == AGENT_FAILURE_SHORTAGE;
    apr_interval_time_t pause = agent_backoff_delay(
        batch->patience.failures, is_long ? WAIT : BRIEF_WAIT, LONGEST_WAIT);

    batch->retry_at = agent_database_after(context, pause);
    batch->patience.is_shortage = failure == AGENT_FAILURE_SHORTAGE;
    agent_report_repeat(context, AGENT_LOG_WARNING, "AGT0378", 0,
                        "output of run %.36s is saved again in about %d s: %s",
                        batch->run_id, AGENT_MAX(1, (int)apr_time_sec(pause)),
                        agent_failure_cause(failure));
    return agent_patience_fail(&batch->patience, &save->saved, batch->cost,
                               context->now, context->timing.patience);
}

/* Whether the database answered others during the attempt: it was neither
 * stopped nor out of reach. */
static bool has_answered(const agent_save_t *save, const agent_batch_t *batch)
{
    return save->control->answered_at > batch->sent_at;
}

/* Whether the run of a line alone that failed is to end. */
static bool count_failure(agent_save_t *save, agent_batch_t *batch,
                          agent_failure_t failure)
{
    agent_lease_t *lease = agent_save_find_lease(save->runs, batch);

    switch (failure) {
    case AGENT_FAILURE_LOST:
    case AGENT_FAILURE_RETRY:
    case AGENT_FAILURE_CANCEL:
    case AGENT_FAILURE_SHORTAGE:
        return pause_line(save, batch, failure);
    case AGENT_FAILURE_TIMEOUT:
        if (lease != NULL) {
            lease->batch_size.needs_long_limit = true;
        }
        /* It counts if the line had the longer limit. */
        batch->failures += batch->has_long_limit && has_answered(save, batch);
        break;
    default:
        batch->failures += failure == AGENT_FAILURE_OTHER;
    }
    return batch->failures >= MAX_FAILURES;
}

/* The lock does not come from the output; the run waits for it briefly from now
 * on, and later and later. */
static void pause_locked(agent_save_t *save, agent_batch_t *batch)
{
    const agent_lease_t *lease = agent_save_find_lease(save->runs, batch);

    mark_locked(save->runs, batch);
    if (lease != NULL) {
        batch->retry_at = agent_database_after(
            save->runs->context,
            agent_backoff_delay(lease->batch_size.lock_waits - 1, BRIEF_WAIT,
                                LONGEST_LOCK_WAIT));
    }
}

/* The time in which the connection is made again is part of the attempt: it
 * delays the other runs. It is not known yet. */
static void note_disconnect(agent_save_t *save, const agent_batch_t *batch,
                            agent_failure_t failure)
{
    if (save->sent_on->lost_at == 0) {
        return;
    }
    memcpy(save->disconnected, batch->run_id, sizeof(save->disconnected));
    apr_cpystrn(save->disconnected_deployment,
                agent_fair_queue_deployment(batch),
                sizeof(save->disconnected_deployment));
    save->disconnected_at = save->runs->context->now;
    save->disconnected_sent_at = batch->sent_at;
    save->disconnected_control = save->control->connection;
    save->disconnected_why = agent_failure_cause(failure);
    save->is_own_loss = has_no_notice(save->sent_on, batch);
    save->had_failed = batch->failures > 0 || batch->patience.failures > 0;
}

/* Whether the output of a dedicated batch whose connection is up is at fault,
 * as far as is known. If it has failed for lack of resources, for example, it
 * is at fault when as much of others was saved in that time. */
static bool is_at_fault(const agent_batch_t *batch, agent_failure_t failure)
{
    switch (failure) {
    case AGENT_FAILURE_LOCK:
    case AGENT_FAILURE_SETUP:
        return false;
    case AGENT_FAILURE_TIMEOUT:
        return batch->has_long_limit || batch->cost <= AGENT_BATCH_SIZE_FIRST;
    case AGENT_FAILURE_RETRY:
    case AGENT_FAILURE_CANCEL:
    case AGENT_FAILURE_SHORTAGE:
        return batch->patience.beside_others > 0;
    default:
        return true;
    }
}

/* Whether the process of the database crashed in the attempt. */
static bool has_crashed(const agent_save_t *save, const agent_save_loss_t *loss)
{
    return loss->sent_at > 0
        && agent_retry_has_crashed(save->worker, loss->sent_at);
}

/* The mark and the pause begin when the database is there again. */
static void take_own_loss(agent_save_t *save, apr_interval_time_t lost)
{
    const agent_retry_loss_t loss = {
        .deployment_id = save->disconnected_deployment,
        .sent_at = save->disconnected_sent_at,
        .control = save->disconnected_control,
        .lost = lost,
        .why = save->disconnected_why};

    /* The loss that counts for the line may have been counted by now. */
    agent_retry_blame(
        save->worker, &save->runs->batches.faulty, &loss,
        agent_retry_has_crashed(save->worker, save->disconnected_sent_at));
}

static void charge_reconnect(agent_save_t *save)
{
    agent_batch_queue_t *queue = &save->runs->batches;
    apr_interval_time_t lost = queue->context->now - save->disconnected_at;
    apr_interval_time_t used = AGENT_MIN(lost, LONGEST_RECONNECT);
    const agent_batch_t *batch = agent_fair_queue_first_of(&queue->dedicated,
                                                           save->disconnected);

    if (batch != NULL) {
        agent_fair_queue_charge_time(batch, used);
    }
    if (save->is_own_loss) {
        take_own_loss(save, lost);
    }
    save->disconnected_at = 0;
}

/* Without an answer to others during a time-out the output of the deployment
 * may have kept the control connection waiting as well, or the database. */
static void mark_deployment(agent_save_t *save, const agent_batch_t *batch,
                            agent_failure_t failure)
{
    agent_faulty_table_t *faulty = &save->runs->batches.faulty;
    const char *deployment_id = agent_fair_queue_deployment(batch);
    const char *why = agent_failure_cause(failure);

    if (save->sent_on->lost_at > 0) {
        if (save->is_own_loss) {
            agent_faulty_isolate(faulty, deployment_id);
        }
        return;
    }
    if (!is_at_fault(batch, failure)) {
        return;
    }
    if (agent_refusal_find(failure) != NULL) {
        agent_faulty_refuse(faulty, deployment_id, batch->sent_at, why);
    }
    else if (failure == AGENT_FAILURE_TIMEOUT && !has_answered(save, batch)) {
        agent_faulty_slow(faulty, deployment_id, batch->sent_at);
    }
    else {
        /* A failure that may pass was not the first of its line. */
        agent_faulty_fail(
            faulty, deployment_id, batch->sent_at,
            batch->patience.beside_others > 0 ? 1 : AGENT_FAULTY_FAILURES, why);
    }
}

void agent_save_failure_take_dedicated(void *part, agent_failure_t failure)
{
    agent_save_t *save = part;
    agent_batch_t *batch = save->runs->batches.sent_dedicated;
    agent_lease_key_t key = agent_batch_item(batch, 0)->run->key;
    const agent_refusal_t *why = agent_refusal_find(failure);

    agent_batch_send_fail(
        &save->runs->batches, batch,
        agent_database_retry_at(save->runs->context, failure));
    keep_loss(&save->lost_dedicated, batch, save->sent_on, failure);
    note_disconnect(save, batch, failure);
    mark_deployment(save, batch, failure);
    if (why != NULL) {
        refuse_run(save->runs, &key, why);
    }
    else if (failure == AGENT_FAILURE_LOCK) {
        pause_locked(save, batch);
    }
    else if (batch->items->nelts > 1) {
        halve(save, batch, failure);
    }
    else if (count_failure(save, batch, failure)) {
        refuse_run(save->runs, &key, agent_refusal_find_last(failure));
    }
}

/* ---- crashes of the database ---- */

static void count_shared_crash(agent_save_t *save)
{
    agent_save_loss_t *loss = &save->lost_shared;
    agent_batch_t *batch = agent_batch_send_first_shared(&save->runs->batches);

    if (!has_crashed(save, loss)) {
        return;
    }
    loss->sent_at = 0;
    if (batch != NULL && batch->number == loss->number) {
        split_shared(&save->runs->batches, batch);
    }
}

/* The line alone of the attempt is still the first one of its run. */
static void count_crash_of_line(agent_save_t *save,
                                const agent_lease_key_t *key)
{
    agent_batch_t *batch = agent_fair_queue_first_of(
        &save->runs->batches.dedicated, key->run_id);

    if (batch != NULL && batch->items->nelts == 1
        && agent_batch_item(batch, 0)->run->key.epoch == key->epoch
        && ++batch->failures >= MAX_FAILURES) {
        refuse_run(save->runs, key, &agent_refusal_crashed);
    }
}

static void count_dedicated_crash(agent_save_t *save)
{
    agent_save_loss_t *loss = &save->lost_dedicated;
    agent_lease_t *lease = agent_lease_find(&save->runs->leases, &loss->key);

    if (!has_crashed(save, loss)) {
        return;
    }
    loss->sent_at = 0;
    if (loss->lines == 1) {
        count_crash_of_line(save, &loss->key);
    }
    else if (lease != NULL) {
        agent_batch_size_crash(&lease->batch_size, loss->lines);
    }
}

void agent_save_failure_on_connected(agent_save_t *save)
{
    const agent_batch_queue_t *queue = &save->runs->batches;

    if (save->disconnected_at > 0 && save->sent_on->lost_at == 0
        && save->control->lost_at == 0) {
        charge_reconnect(save);
    }
    if (queue->sent_shared == NULL) {
        count_shared_crash(save);
    }
    if (queue->sent_dedicated == NULL) {
        count_dedicated_crash(save);
    }
}

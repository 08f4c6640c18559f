/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's lease: renewal, fencing, and losing it; see worker.h. */
#include "worker.h"

#include <signal.h>
#include <string.h>

#include <apr_strings.h>

#include "../instance.h"
#include "../run_end.h"
#include "../runner/exit.h"

#define SWEEP_INTERVAL      apr_time_from_sec(10)
#define PARTITIONS_INTERVAL apr_time_from_sec(6 * 3600)
/* Events are kept for ever when no retention is configured. */
#define FOR_EVER_DAYS 36500

/* Other workers may have lost the database too: they renew their leases before
 * this one sweeps those that have expired. */
static void delay_sweep(agent_supervisor_t *sv)
{
    sv->worker.sweep_at = agent_database_after(sv->context, SWEEP_INTERVAL);
}

void agent_worker_on_connected(agent_supervisor_t *sv, bool is_first,
                               const char *unsafe)
{
    if (!is_first) {
        delay_sweep(sv);
    }
    else if (unsafe != NULL) {
        /* Once: the operator's choice, which other guarantees depend on. */
        agent_report_write(sv->context, AGENT_LOG_WARNING, "AGT0316", 0,
                           "a crash of the database may lose runs that were "
                           "acknowledged: %s",
                           unsafe);
    }
    sv->worker.renew_at = sv->context->now;
    /* A crash of the database may have undone the last claims. */
    agent_schedule_check(&sv->schedule);
    agent_schedule_claim(&sv->schedule);
}

void agent_worker_on_bulk_connected(agent_supervisor_t *sv, bool is_first,
                                    const char *unsafe)
{
    if (!is_first) {
        delay_sweep(sv);
    }
}

/* ---- renewal ---- */

static apr_time_t due_renew(agent_supervisor_t *sv)
{
    return agent_worker_is_live(&sv->worker) ? sv->worker.renew_at
                                             : AGENT_CLOCK_NEVER;
}

static const agent_statement_t renew_worker = {
    .name = "agent_renew_worker",
    .params = 3,
    .is_repeatable = true,
    .sql = "select agent.renew_worker($1::bigint, $2::integer, "
           "$3::boolean)"};

static apr_status_t send_renew(agent_supervisor_t *sv,
                               agent_database_t *database, agent_error_t **err)
{
    const char *params[3];

    sv->worker.sent_at = sv->context->now;
    params[0] = sv->worker.id;
    params[1] = apr_itoa(database->scratch, sv->context->config->lease_sec);
    params[2] = sv->context->mode == AGENT_MODE_RUNNING ? "false" : "true";
    return agent_db_send(database->db, &renew_worker, params, err,
                         database->scratch);
}

/* Other workers have, or may have, all our runs: stop at once, register again.
 */
static void become_fenced(agent_supervisor_t *sv)
{
    agent_report_write(sv->context, AGENT_LOG_ERR, "AGT0322", 0,
                       "worker %s was declared dead: its runners are killed, "
                       "its runs belong to others",
                       sv->worker.id);
    agent_runner_kill_all(sv, AGENT_LOSS_FORGET, "fenced");
    /* A statement in flight there would be refused. */
    agent_database_close(&sv->bulk, AGENT_FAILURE_RETRY);
    agent_batch_clear(&sv->batches);
    agent_release_clear(&sv->releases);
    agent_run_end_forget_all(sv);
    sv->worker.state = AGENT_WORKER_NEW;
    sv->runners.is_stopped = false;
    sv->worker.is_in_doubt = false;
}

static void receive_renew(agent_supervisor_t *sv,
                          const agent_db_result_t *result)
{
    agent_worker_t *worker = &sv->worker;
    const char *answer = agent_db_rows(result) == 1
        ? agent_db_value(result, 0, 0)
        : NULL;

    if (answer == NULL || strcmp(answer, "ok") != 0) {
        become_fenced(sv);
        return;
    }
    worker->renewed_at = worker->sent_at;
    worker->renew_at = worker->sent_at + sv->context->timing.renew;
    if (sv->runners.is_stopped) {
        agent_report_write(sv->context, AGENT_LOG_NOTICE, "AGT0325", 0,
                           "lease renewed again: runners go on");
        agent_runner_signal_all(&sv->runners, SIGCONT);
        sv->runners.is_stopped = false;
    }
}

static void fail_renew(agent_supervisor_t *sv, agent_failure_t failure)
{
    sv->worker.renew_at = agent_database_retry_at(sv->context, failure);
}

const agent_operation_t agent_renew_operation = {
    "renew_worker", due_renew, send_renew, receive_renew, fail_renew, true};

/* ---- without a renewal ---- */

/* After 13/20 of the lease runners are stopped, after all of it killed. */
static apr_time_t stop_time(const agent_supervisor_t *sv)
{
    return sv->worker.renewed_at + sv->context->timing.stop;
}

static apr_time_t kill_time(const agent_supervisor_t *sv)
{
    return sv->worker.renewed_at + sv->context->timing.kill;
}

apr_time_t agent_worker_next_tick(const agent_supervisor_t *sv)
{
    if (!agent_worker_is_live(&sv->worker) || sv->leases.held == 0) {
        return AGENT_CLOCK_NEVER;
    }
    return sv->runners.is_stopped ? kill_time(sv) : stop_time(sv);
}

static void fence_ourselves(agent_supervisor_t *sv)
{
    if (!sv->runners.is_stopped) {
        agent_report_write(
            sv->context, AGENT_LOG_WARNING, "AGT0323", 0,
            "the lease could not be renewed for %d ms: runners "
            "are stopped until it is",
            (int)apr_time_as_msec(sv->context->now - sv->worker.renewed_at));
        sv->runners.is_stopped = true;
        agent_runner_signal_all(&sv->runners, SIGSTOP);
    }
    if (kill_time(sv) <= sv->context->now) {
        agent_report_write(sv->context, AGENT_LOG_ERR, "AGT0324", 0,
                           "the lease has ended without a renewal: runners "
                           "are killed, their runs start again");
        agent_runner_kill_all(sv, AGENT_LOSS_UNCOUNTED,
                              "the database could not be reached");
    }
}

/* ---- in doubt ---- */

void agent_worker_doubt(agent_supervisor_t *sv)
{
    if (agent_worker_is_live(&sv->worker) && !sv->worker.is_in_doubt) {
        agent_report_write(sv->context, AGENT_LOG_WARNING, "AGT0315", 0,
                           "the answer to a claim was lost: registering anew "
                           "when the runs under way have ended, in %d s at "
                           "the latest",
                           sv->context->config->lease_sec);
        sv->worker.is_in_doubt = true;
        sv->worker.doubt_until = sv->context->now + sv->context->timing.kill;
    }
}

/* All runs that this worker knows have ended and are saved. */
static bool may_deregister(const agent_supervisor_t *sv)
{
    return sv->leases.held == 0 && agent_batch_is_empty(&sv->batches)
        && agent_release_is_empty(&sv->releases);
}

static void resolve_doubt(agent_supervisor_t *sv)
{
    /* First: while runners send output there is always something to save. */
    if (sv->worker.doubt_until <= sv->context->now && sv->leases.held > 0) {
        agent_runner_kill_all(sv, AGENT_LOSS_FORGET, "registering anew");
    }
    if (may_deregister(sv)) {
        agent_worker_leave(sv);
    }
}

void agent_worker_tick(agent_supervisor_t *sv)
{
    if (agent_worker_next_tick(sv) <= sv->context->now) {
        fence_ourselves(sv);
    }
    if (sv->worker.is_in_doubt && agent_worker_is_live(&sv->worker)
        && sv->context->mode == AGENT_MODE_RUNNING) {
        resolve_doubt(sv);
    }
}

/* ---- maintenance ---- */

static apr_time_t due_sweep(agent_supervisor_t *sv)
{
    return agent_worker_is_live(&sv->worker) ? sv->worker.sweep_at
                                             : AGENT_CLOCK_NEVER;
}

static const agent_statement_t sweep_workers = {
    .name = "agent_sweep_workers",
    .is_repeatable = true,
    .sql = "select agent.sweep_workers()"};

static apr_status_t send_sweep(agent_supervisor_t *sv,
                               agent_database_t *database, agent_error_t **err)
{
    sv->worker.sweep_at = agent_database_after(sv->context, SWEEP_INTERVAL);
    return agent_db_send(database->db, &sweep_workers, NULL, err,
                         database->scratch);
}

static void receive_sweep(agent_supervisor_t *sv,
                          const agent_db_result_t *result)
{
    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_worker_add_dead(sv, agent_db_value(result, row, 0), true);
    }
}

static void fail_sweep(agent_supervisor_t *sv, agent_failure_t failure)
{
    sv->worker.sweep_at = agent_database_after(sv->context,
                                               apr_time_from_sec(1));
}

const agent_operation_t agent_sweep_operation = {
    "sweep_workers", due_sweep, send_sweep, receive_sweep, fail_sweep};

const char *agent_worker_retention(const agent_supervisor_t *sv,
                                   apr_pool_t *pool)
{
    int days = sv->context->config->event_retention_days;

    return apr_psprintf(pool, "%d days", days > 0 ? days : FOR_EVER_DAYS);
}

static apr_time_t due_partitions(agent_supervisor_t *sv)
{
    return agent_worker_is_live(&sv->worker) ? sv->worker.partitions_at
                                             : AGENT_CLOCK_NEVER;
}

static const agent_statement_t maintain_partitions = {
    .name = "agent_maintain_partitions",
    .params = 1,
    .is_repeatable = true,
    .sql = "select agent.maintain_partitions($1::interval)"};

static apr_status_t send_partitions(agent_supervisor_t *sv,
                                    agent_database_t *database,
                                    agent_error_t **err)
{
    const char *params[] = {agent_worker_retention(sv, database->scratch)};

    sv->worker.partitions_at = agent_database_after(sv->context,
                                                    PARTITIONS_INTERVAL);
    return agent_db_send(database->db, &maintain_partitions, params, err,
                         database->scratch);
}

static void receive_partitions(agent_supervisor_t *sv,
                               const agent_db_result_t *result)
{
    /* The number of changed partitions is not used. */
}

static void fail_partitions(agent_supervisor_t *sv, agent_failure_t failure)
{
    sv->worker.partitions_at = agent_database_after(sv->context,
                                                    apr_time_from_sec(60));
}

const agent_operation_t agent_partitions_operation = {
    "maintain_partitions", due_partitions, send_partitions, receive_partitions,
    fail_partitions};

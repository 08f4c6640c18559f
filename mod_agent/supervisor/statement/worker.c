/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's lease: renewal, fencing, and what to do without it; see
 * worker.h. worker_register.c has the way to the first lease. */
#include "worker.h"

#include <signal.h>
#include <string.h>

#include <apr_strings.h>

#include "../instance.h"

#define SWEEP_INTERVAL      apr_time_from_sec(10)
#define PARTITIONS_INTERVAL apr_time_from_sec(6 * 3600)
/* Events are kept for ever when no retention is configured. */
#define FOR_EVER_DAYS 36500

static apr_interval_time_t lease_of(const agent_supervisor_t *sv)
{
    return apr_time_from_sec(sv->config->lease_sec);
}

bool agent_worker_is_live(const agent_supervisor_t *sv)
{
    return sv->worker.state == AGENT_WORKER_LIVE;
}

void agent_worker_delay_sweep(agent_supervisor_t *sv)
{
    sv->worker.sweep_at = agent_database_after(sv, SWEEP_INTERVAL);
}

void agent_worker_reconnected(agent_supervisor_t *sv)
{
    sv->worker.renew_at = sv->now;
    /* A crash of the database may have undone the last claims. */
    agent_check_wake(sv);
    agent_claim_wake(sv);
}

/* ---- renewal ---- */

static apr_time_t due_renew(agent_supervisor_t *sv)
{
    return agent_worker_is_live(sv) ? sv->worker.renew_at : AGENT_NEVER;
}

static apr_status_t send_renew(agent_supervisor_t *sv,
                               agent_database_t *database, agent_error_t **err)
{
    const char *params[3];

    sv->worker.sent_at = sv->now;
    params[0] = sv->worker.id;
    params[1] = apr_itoa(database->scratch, sv->config->lease_sec);
    params[2] = sv->mode == AGENT_MODE_RUNNING ? "false" : "true";
    return agent_db_send(database->db, AGENT_SQL_RENEW_WORKER, params, err,
                         database->scratch);
}

/* Others have, or may have, all our runs: stop at once, begin anew. */
static void become_fenced(agent_supervisor_t *sv)
{
    agent_report_write(sv, AGENT_LOG_ERR, "AGT0322", 0,
                       "worker %s was declared dead: its runners are killed, "
                       "its runs belong to others",
                       sv->worker.id);
    agent_runner_kill_all(sv, AGENT_LOSS_FORGET, "fenced");
    /* Whatever is in flight there would be refused. */
    agent_database_close(sv, &sv->bulk, AGENT_FAILURE_RETRY);
    agent_batch_clear(sv);
    agent_release_clear(sv);
    agent_lease_forget_all(sv);
    sv->worker.state = AGENT_WORKER_NEW;
    sv->worker.is_stopped = false;
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
    worker->renew_at = worker->sent_at + lease_of(sv) / 4;
    if (worker->is_stopped) {
        agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0325", 0,
                           "lease renewed again: runners go on");
        agent_runner_signal_all(sv, SIGCONT);
        worker->is_stopped = false;
    }
}

static void fail_renew(agent_supervisor_t *sv, agent_failure_t failure)
{
    sv->worker.renew_at = agent_database_retry_at(sv, failure);
}

const agent_operation_t agent_renew_operation = {
    "renew_worker", due_renew, send_renew, receive_renew, fail_renew};

/* ---- without a renewal ---- */

/* 13 of 20 seconds: runners are stopped; all of them: they are killed. */
static apr_time_t stop_time(const agent_supervisor_t *sv)
{
    return sv->worker.renewed_at + lease_of(sv) * 13 / 20;
}

static apr_time_t kill_time(const agent_supervisor_t *sv)
{
    return sv->worker.renewed_at + lease_of(sv);
}

apr_time_t agent_worker_next_tick(const agent_supervisor_t *sv)
{
    if (!agent_worker_is_live(sv) || sv->leases.held == 0) {
        return AGENT_NEVER;
    }
    return sv->worker.is_stopped ? kill_time(sv) : stop_time(sv);
}

static void fence_ourselves(agent_supervisor_t *sv)
{
    if (!sv->worker.is_stopped) {
        agent_report_write(
            sv, AGENT_LOG_WARNING, "AGT0323", 0,
            "the lease could not be renewed for %d ms: runners "
            "are stopped until it is",
            (int)apr_time_as_msec(sv->now - sv->worker.renewed_at));
        sv->worker.is_stopped = true;
        agent_runner_signal_all(sv, SIGSTOP);
    }
    if (kill_time(sv) <= sv->now) {
        agent_report_write(sv, AGENT_LOG_ERR, "AGT0324", 0,
                           "the lease has ended without a renewal: runners "
                           "are killed, their runs start again");
        agent_runner_kill_all(sv, AGENT_LOSS_UNCOUNTED,
                              "the database could not be reached");
    }
}

/* ---- in doubt ---- */

void agent_worker_doubt(agent_supervisor_t *sv)
{
    if (agent_worker_is_live(sv) && !sv->worker.is_in_doubt) {
        agent_report_write(sv, AGENT_LOG_WARNING, "AGT0315", 0,
                           "the answer to a claim was lost: registering anew "
                           "when the runs under way have ended, in %d s at "
                           "the latest",
                           sv->config->lease_sec);
        sv->worker.is_in_doubt = true;
        sv->worker.doubt_until = sv->now + lease_of(sv);
    }
}

/* All that we know has ended, and been saved. */
static bool may_renounce(const agent_supervisor_t *sv)
{
    return sv->leases.held == 0 && agent_batch_is_empty(sv)
        && agent_release_is_empty(sv);
}

static void resolve_doubt(agent_supervisor_t *sv)
{
    /* First: while runners speak there is always something to save. */
    if (sv->worker.doubt_until <= sv->now && sv->leases.held > 0) {
        agent_runner_kill_all(sv, AGENT_LOSS_FORGET, "registering anew");
    }
    if (may_renounce(sv)) {
        agent_worker_leave(sv);
    }
}

void agent_worker_tick(agent_supervisor_t *sv)
{
    if (agent_worker_next_tick(sv) <= sv->now) {
        fence_ourselves(sv);
    }
    if (sv->worker.is_in_doubt && agent_worker_is_live(sv)
        && sv->mode == AGENT_MODE_RUNNING) {
        resolve_doubt(sv);
    }
}

/* ---- care of others ---- */

static apr_time_t due_sweep(agent_supervisor_t *sv)
{
    return agent_worker_is_live(sv) ? sv->worker.sweep_at : AGENT_NEVER;
}

static apr_status_t send_sweep(agent_supervisor_t *sv,
                               agent_database_t *database, agent_error_t **err)
{
    sv->worker.sweep_at = agent_database_after(sv, SWEEP_INTERVAL);
    return agent_db_send(database->db, AGENT_SQL_SWEEP_WORKERS, NULL, err,
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
    sv->worker.sweep_at = agent_database_after(sv, apr_time_from_sec(1));
}

const agent_operation_t agent_sweep_operation = {
    "sweep_workers", due_sweep, send_sweep, receive_sweep, fail_sweep};

const char *agent_worker_retention(const agent_supervisor_t *sv,
                                   apr_pool_t *pool)
{
    int days = sv->config->event_retention_days;

    return apr_psprintf(pool, "%d days", days > 0 ? days : FOR_EVER_DAYS);
}

static apr_time_t due_partitions(agent_supervisor_t *sv)
{
    return agent_worker_is_live(sv) ? sv->worker.partitions_at : AGENT_NEVER;
}

static apr_status_t send_partitions(agent_supervisor_t *sv,
                                    agent_database_t *database,
                                    agent_error_t **err)
{
    const char *params[] = {agent_worker_retention(sv, database->scratch)};

    sv->worker.partitions_at = agent_database_after(sv, PARTITIONS_INTERVAL);
    return agent_db_send(database->db, AGENT_SQL_MAINTAIN_PARTITIONS, params,
                         err, database->scratch);
}

static void receive_partitions(agent_supervisor_t *sv,
                               const agent_db_result_t *result)
{
    /* How many changed is of no interest to anybody. */
}

static void fail_partitions(agent_supervisor_t *sv, agent_failure_t failure)
{
    sv->worker.partitions_at = agent_database_after(sv, apr_time_from_sec(60));
}

const agent_operation_t agent_partitions_operation = {
    "maintain_partitions", due_partitions, send_partitions, receive_partitions,
    fail_partitions};

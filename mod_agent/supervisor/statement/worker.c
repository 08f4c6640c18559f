/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's lease: renewal, fencing, and losing it; see worker.h. */
#include "worker.h"

#include <signal.h>
#include <string.h>

#include <apr_strings.h>

#include "../base/order.h"
#include "../runner/exit.h"
#include "../runner/run/run_end.h"
#include "retry.h"

#define SWEEP_AFTER_CONNECT apr_time_from_sec(10)
#define SWEEP_RETRY         apr_time_from_sec(1)

/* Other workers may have lost the database too: they renew their leases before
 * this one sweeps those that have expired. */
static void delay_sweep(agent_worker_t *worker)
{
    worker->sweep_at = agent_database_after(worker->context,
                                            SWEEP_AFTER_CONNECT);
}

/* Logged once: it is the operator's choice, but guarantees depend on it. */
static void warn_of_settings(const agent_context_t *context, const char *unsafe)
{
    if (unsafe != NULL) {
        agent_report_write(context, AGENT_LOG_WARNING, "AGT0316", 0,
                           "a crash of the database may lose runs that were "
                           "acknowledged: %s",
                           unsafe);
    }
}

/* Without this warning a client's 503 would be the first to tell, under load.
 */
static void warn_of_connections(const agent_context_t *context,
                                apr_int64_t most)
{
    int children = context->config->children;
    int each = context->config->child_connections;
    apr_int64_t sum = (apr_int64_t)children * each
        + AGENT_SUPERVISOR_CONNECTIONS;

    if (children > 0 && sum > most) {
        agent_report_write(context, AGENT_LOG_WARNING, "AGT0317", 0,
                           "max_connections: expected room for the %ld "
                           "connections that this httpd may open (%d children "
                           "with %d each, of which 1 listens, and %d of the "
                           "supervisor), got %ld: lower DBDMax, or raise "
                           "max_connections",
                           (long)sum, children, each,
                           AGENT_SUPERVISOR_CONNECTIONS, (long)most);
    }
}

void agent_worker_on_connected(agent_worker_t *worker, bool is_first,
                               const agent_session_info_t *info)
{
    if (is_first) {
        warn_of_settings(worker->context, info->unsafe);
        warn_of_connections(worker->context, info->connections);
    }
    else {
        delay_sweep(worker);
    }
    worker->renew_at = worker->context->now;
    /* A failover of the database may have undone the last claims, ends and
     * releases. */
    agent_schedule_search(worker->schedule);
    agent_schedule_claim(worker->schedule);
}

void agent_worker_on_bulk_connected(agent_worker_t *worker, bool is_first)
{
    if (!is_first) {
        delay_sweep(worker);
    }
}

/* ---- renewal ---- */

static apr_time_t due_renew(void *part)
{
    const agent_worker_t *worker = part;

    return agent_worker_is_live(worker) ? worker->renew_at : AGENT_CLOCK_NEVER;
}

static const agent_statement_t renew_worker = {
    .name = "agent_renew_worker",
    .params = 3,
    .sql = "select agent.renew_worker($1, $2, $3)"};

static apr_status_t send_renew(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    agent_worker_t *worker = part;
    const char *params[3];

    worker->sent_at = worker->context->now;
    params[0] = worker->id;
    params[1] = apr_itoa(database->scratch, worker->context->config->lease_sec);
    params[2] = worker->context->mode == AGENT_MODE_RUNNING ? "false" : "true";
    return agent_db_send(database->db, &renew_worker, params, err,
                         database->scratch);
}

/* Drops all leases, with their output and releases. No shared batch may be in
 * flight; other statements about runs are given up. */
static void forget_runs(agent_worker_t *worker)
{
    agent_database_close(worker->bulk, AGENT_FAILURE_RETRY);
    agent_database_close(worker->output, AGENT_FAILURE_RETRY);
    agent_batch_clear(&worker->runs->batches);
    agent_release_clear(&worker->runs->releases);
    agent_run_end_abandon_all(worker->runs);
}

/* Other workers may have all runs: kills the runners and registers again. */
static void become_fenced(agent_worker_t *worker)
{
    agent_report_write(worker->context, AGENT_LOG_ERR, "AGT0322", 0,
                       "worker %s was declared dead: its runners are killed, "
                       "its runs belong to others",
                       worker->id);
    agent_runner_exit_kill_all(worker->runners, worker->runs, AGENT_LOSS_FORGET,
                               "fenced");
    forget_runs(worker);
    for (int i = 0; i < worker->runners->pool_count; i++) {
        agent_graphs_reset_reports(&worker->runners->pools[i].graphs);
    }
    worker->state = AGENT_WORKER_NEW;
    worker->runners->is_stopped = false;
}

static void receive_renew(void *part, const agent_db_result_t *result)
{
    agent_worker_t *worker = part;
    const char *answer = agent_db_rows(result) == 1
        ? agent_db_value(result, 0, 0)
        : NULL;

    if (answer == NULL || strcmp(answer, "ok") != 0) {
        become_fenced(worker);
        return;
    }
    worker->renewed_at = worker->sent_at;
    worker->renew_at = worker->sent_at + worker->context->timing.renew;
    if (worker->runners->is_stopped) {
        agent_report_write(worker->context, AGENT_LOG_NOTICE, "AGT0325", 0,
                           "lease renewed again: runners continue");
        agent_runner_signal_all(worker->runners, SIGCONT);
        worker->runners->is_stopped = false;
    }
}

static void fail_renew(void *part, agent_failure_t failure)
{
    agent_worker_t *worker = part;

    worker->renew_at = agent_database_retry_at(worker->context, failure);
}

const agent_operation_t agent_renew_operation = {
    "renew_worker", due_renew, send_renew, receive_renew, fail_renew, true};

/* ---- without a renewal ---- */

static apr_time_t stop_time(const agent_worker_t *worker)
{
    return worker->renewed_at + worker->context->timing.stop;
}

static apr_time_t kill_time(const agent_worker_t *worker)
{
    return worker->renewed_at + worker->context->timing.kill;
}

apr_time_t agent_worker_next_tick(const agent_worker_t *worker)
{
    if (!agent_worker_is_live(worker) || worker->runs->leases.held == 0) {
        return AGENT_CLOCK_NEVER;
    }
    return worker->runners->is_stopped ? kill_time(worker) : stop_time(worker);
}

/* Else a run whose statements crash the database would begin anew after each
 * recovery that takes longer than the lease. */
static void mark_crashes(const agent_worker_t *worker)
{
    apr_hash_index_t *i;

    for (i = apr_hash_first(NULL, worker->runs->leases.by_key); i != NULL;
         i = apr_hash_next(i)) {
        agent_lease_t *lease = apr_hash_this_val(i);

        lease->has_crashed = agent_retry_is_at_fault(&lease->start_retry,
                                                     worker)
            || agent_retry_is_at_fault(&lease->request.retry, worker);
    }
}

static void fence_self(agent_worker_t *worker)
{
    if (!worker->runners->is_stopped) {
        agent_report_write(
            worker->context, AGENT_LOG_WARNING, "AGT0323", 0,
            "the lease could not be renewed for %d ms: runners "
            "are stopped until it is",
            (int)apr_time_as_msec(worker->context->now - worker->renewed_at));
        worker->runners->is_stopped = true;
        agent_runner_signal_all(worker->runners, SIGSTOP);
    }
    if (kill_time(worker) <= worker->context->now) {
        mark_crashes(worker);
        agent_report_write(worker->context, AGENT_LOG_ERR, "AGT0324", 0,
                           "the lease has ended without a renewal: runners "
                           "are killed, their runs start again");
        agent_runner_exit_kill_all(worker->runners, worker->runs,
                                   AGENT_LOSS_UNCOUNTED,
                                   "the database could not be reached");
    }
}

void agent_worker_tick(agent_worker_t *worker)
{
    if (agent_worker_next_tick(worker) <= worker->context->now) {
        fence_self(worker);
    }
}

/* ---- workers whose lease has expired ---- */

static apr_time_t due_sweep(void *part)
{
    const agent_worker_t *worker = part;

    return agent_worker_due(worker, worker->sweep_at);
}

static const agent_statement_t sweep_workers = {
    .name = "agent_sweep_workers",
    .params = 1,
    .sql = "select agent.sweep_workers($1)"};

static apr_status_t send_sweep(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    agent_worker_t *worker = part;
    const char *late_sec = apr_itoa(database->scratch,
                                    AGENT_SWEEP_WORKERS_LATE_SEC);

    worker->sweep_at = agent_database_after(worker->context,
                                            AGENT_SWEEP_WORKERS_INTERVAL);
    return agent_db_send(database->db, &sweep_workers, &late_sec, err,
                         database->scratch);
}

static void receive_sweep(void *part, const agent_db_result_t *result)
{
    agent_worker_t *worker = part;

    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_worker_add_dead(worker, agent_db_value(result, row, 0), true);
    }
}

static void fail_sweep(void *part, agent_failure_t failure)
{
    agent_worker_t *worker = part;

    worker->sweep_at = agent_database_after(worker->context, SWEEP_RETRY);
}

const agent_operation_t agent_sweep_workers_operation = {
    "sweep_workers", due_sweep, send_sweep, receive_sweep, fail_sweep};

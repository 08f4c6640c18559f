/* SPDX-License-Identifier: Apache-2.0 */
/* expire_threads, maintain_partitions, sweep_state, sweep_events,
 * sweep_copies, sweep_calls, sweep_store, sweep_accounts, sweep_api_keys,
 * sweep_audit_log, count_accounts, measure_accounts and end_full_runs; see
 * expire.h. */
#include "expire.h"

#include <string.h>

#include <apr_strings.h>

#define INTERVAL            apr_time_from_sec(10)
#define PARTITIONS_INTERVAL apr_time_from_sec(6 * 3600)
#define PARTITIONS_RETRY    apr_time_from_sec(60)
/* Between two sweeps, which lock a thread or take half a second. */
#define SWEEP_PAUSE apr_time_from_msec(100)
/* After a sweep that took too long: the next one would too. */
#define SWEEP_LONG_PAUSE apr_time_from_sec(600)
/* Events are kept for ever when no retention is configured. */
#define FOR_EVER_DAYS 36500

static apr_time_t due_if_live(const agent_worker_t *worker, apr_time_t at)
{
    return agent_worker_is_live(worker) ? at : AGENT_CLOCK_NEVER;
}

/* ---- threads ---- */

static apr_time_t due_expire(void *part)
{
    const agent_expire_t *expire = part;

    return due_if_live(expire->worker, expire->threads_at);
}

static const agent_statement_t expire_threads = {
    .name = "agent_expire_threads",
    .sql = "select * from agent.expire_threads()"};

static apr_status_t send_expire(void *part, agent_database_t *database,
                                agent_error_t **err)
{
    agent_expire_t *expire = part;

    expire->threads_at = agent_database_after(database->context, INTERVAL);
    expire->sent_at = database->context->now;
    return agent_db_send(database->db, &expire_threads, NULL, err,
                         database->scratch);
}

static void receive_expire(void *part, const agent_db_result_t *result)
{
    agent_expire_t *expire = part;
    apr_time_t now = expire->worker->context->now;

    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_notify_relay(expire->notify, agent_db_value(result, row, 0));
    }
    /* The connection is left to others for as long as this took. */
    if (agent_db_rows(result) > 0) {
        expire->threads_at = now + (now - expire->sent_at);
    }
}

static void fail_expire(void *part, agent_failure_t failure)
{
    agent_expire_t *expire = part;

    expire->threads_at = agent_database_after(expire->worker->context,
                                              INTERVAL);
}

const agent_operation_t agent_expire_operation = {
    "expire_threads", due_expire, send_expire, receive_expire, fail_expire};

/* ---- partitions ---- */

const char *agent_expire_retention(const agent_context_t *context,
                                   apr_pool_t *pool)
{
    int days = context->config->event_retention_days;

    return apr_psprintf(pool, "%d days", days > 0 ? days : FOR_EVER_DAYS);
}

static apr_time_t due_partitions(void *part)
{
    const agent_expire_t *expire = part;

    return due_if_live(expire->worker, expire->partitions_at);
}

static const agent_statement_t maintain_partitions = {
    .name = "agent_maintain_partitions",
    .params = 1,
    .sql = "select agent.maintain_partitions($1)"};

static apr_status_t send_partitions(void *part, agent_database_t *database,
                                    agent_error_t **err)
{
    agent_expire_t *expire = part;
    const char *params[] = {
        agent_expire_retention(database->context, database->scratch)};

    expire->partitions_at = agent_database_after(database->context,
                                                 PARTITIONS_INTERVAL);
    return agent_db_send(database->db, &maintain_partitions, params, err,
                         database->scratch);
}

static void receive_partitions(void *part, const agent_db_result_t *result)
{
    /* The number of changed partitions is not used. */
}

static void fail_partitions(void *part, agent_failure_t failure)
{
    agent_expire_t *expire = part;

    expire->partitions_at = agent_database_after(expire->worker->context,
                                                 PARTITIONS_RETRY);
}

const agent_operation_t agent_partitions_operation = {
    "maintain_partitions", due_partitions, send_partitions, receive_partitions,
    fail_partitions};

/* ---- sweeps: functions that return 0 when nothing is left ---- */

static apr_time_t due_sweep(void *part)
{
    const agent_sweep_t *sweep = part;

    return due_if_live(sweep->worker, sweep->due_at);
}

static const agent_statement_t sweep_state = {
    .name = "agent_sweep_state", .sql = "select agent.sweep_state()"};

static const agent_statement_t sweep_events = {
    .name = "agent_sweep_events", .sql = "select agent.sweep_events()"};

static const agent_statement_t sweep_copies = {
    .name = "agent_sweep_copies", .sql = "select agent.sweep_copies()"};

static apr_status_t send_sweep(agent_sweep_t *sweep,
                               const agent_statement_t *statement,
                               agent_database_t *database, agent_error_t **err)
{
    sweep->due_at = agent_database_after(database->context, INTERVAL);
    return agent_db_send(database->db, statement, NULL, err, database->scratch);
}

static apr_status_t send_state(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    return send_sweep(part, &sweep_state, database, err);
}

static apr_status_t send_events(void *part, agent_database_t *database,
                                agent_error_t **err)
{
    return send_sweep(part, &sweep_events, database, err);
}

static apr_status_t send_copies(void *part, agent_database_t *database,
                                agent_error_t **err)
{
    return send_sweep(part, &sweep_copies, database, err);
}

static void receive_sweep(void *part, const agent_db_result_t *result)
{
    agent_sweep_t *sweep = part;

    if (strcmp(agent_db_value(result, 0, 0), "0") != 0) {
        sweep->due_at = agent_database_after(sweep->worker->context,
                                             SWEEP_PAUSE);
    }
}

static void fail_sweep(void *part, agent_failure_t failure)
{
    agent_sweep_t *sweep = part;

    sweep->due_at = agent_database_after(
        sweep->worker->context,
        failure == AGENT_FAILURE_TIMEOUT ? SWEEP_LONG_PAUSE : INTERVAL);
}

const agent_operation_t agent_state_operation = {
    "sweep_state", due_sweep, send_state, receive_sweep, fail_sweep};

static const agent_statement_t sweep_calls = {
    .name = "agent_sweep_calls", .sql = "select agent.sweep_calls()"};

static apr_status_t send_calls(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    return send_sweep(part, &sweep_calls, database, err);
}

const agent_operation_t agent_call_operation = {
    "sweep_calls", due_sweep, send_calls, receive_sweep, fail_sweep};

static const agent_statement_t sweep_store = {
    .name = "agent_sweep_store", .sql = "select agent.sweep_store()"};

static apr_status_t send_store(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    return send_sweep(part, &sweep_store, database, err);
}

const agent_operation_t agent_store_operation = {
    "sweep_store", due_sweep, send_store, receive_sweep, fail_sweep};

static const agent_statement_t sweep_accounts = {
    .name = "agent_sweep_accounts", .sql = "select agent.sweep_accounts()"};

static apr_status_t send_accounts(void *part, agent_database_t *database,
                                  agent_error_t **err)
{
    return send_sweep(part, &sweep_accounts, database, err);
}

const agent_operation_t agent_account_operation = {
    "sweep_accounts", due_sweep, send_accounts, receive_sweep, fail_sweep};

static const agent_statement_t sweep_api_keys = {
    .name = "agent_sweep_api_keys", .sql = "select agent.sweep_api_keys()"};

static apr_status_t send_api_keys(void *part, agent_database_t *database,
                                  agent_error_t **err)
{
    return send_sweep(part, &sweep_api_keys, database, err);
}

const agent_operation_t agent_api_key_operation = {
    "sweep_api_keys", due_sweep, send_api_keys, receive_sweep, fail_sweep};

static const agent_statement_t sweep_audit_log = {
    .name = "agent_sweep_audit_log",
    .params = 1,
    .sql = "select agent.sweep_audit_log($1)"};

static apr_status_t send_audit_log(void *part, agent_database_t *database,
                                   agent_error_t **err)
{
    agent_sweep_t *sweep = part;
    const char *params[] = {
        apr_psprintf(database->scratch, "%d days",
                     database->context->config->audit_retention_days)};

    sweep->due_at = agent_database_after(database->context, INTERVAL);
    return agent_db_send(database->db, &sweep_audit_log, params, err,
                         database->scratch);
}

const agent_operation_t agent_audit_operation = {
    "sweep_audit_log", due_sweep, send_audit_log, receive_sweep, fail_sweep};

static const agent_statement_t count_accounts = {
    .name = "agent_count_accounts", .sql = "select agent.count_accounts()"};

static apr_status_t send_counts(void *part, agent_database_t *database,
                                agent_error_t **err)
{
    return send_sweep(part, &count_accounts, database, err);
}

const agent_operation_t agent_count_operation = {
    "count_accounts", due_sweep, send_counts, receive_sweep, fail_sweep};

static const agent_statement_t measure_accounts = {
    .name = "agent_measure_accounts", .sql = "select agent.measure_accounts()"};

static apr_status_t send_measures(void *part, agent_database_t *database,
                                  agent_error_t **err)
{
    return send_sweep(part, &measure_accounts, database, err);
}

const agent_operation_t agent_measure_operation = {
    "measure_accounts", due_sweep, send_measures, receive_sweep, fail_sweep};

/* ---- runs of accounts that may not store more ---- */

static apr_time_t due_full(void *part)
{
    const agent_expire_t *expire = part;

    return due_if_live(expire->worker, expire->full_at);
}

static const agent_statement_t end_full_runs = {
    .name = "agent_end_full_runs",
    .params = 1,
    .sql = "select run_id, thread_id from agent.end_full_runs($1)"};

static apr_status_t send_full(void *part, agent_database_t *database,
                              agent_error_t **err)
{
    agent_expire_t *expire = part;
    const char *params[] = {expire->worker->id};

    expire->full_at = agent_database_after(database->context, INTERVAL);
    return agent_db_send(database->db, &end_full_runs, params, err,
                         database->scratch);
}

/* The runners are asked to stop them when their output is not stored. */
static void receive_full(void *part, const agent_db_result_t *result)
{
    agent_expire_t *expire = part;

    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_notify_add(expire->notify, agent_db_value(result, row, 0),
                         agent_db_value(result, row, 1), true);
    }
    if (agent_db_rows(result) > 0) {
        expire->full_at = agent_database_after(expire->worker->context,
                                               SWEEP_PAUSE);
    }
}

static void fail_full(void *part, agent_failure_t failure)
{
    agent_expire_t *expire = part;

    expire->full_at = agent_database_after(expire->worker->context, INTERVAL);
}

const agent_operation_t agent_full_operation = {
    "end_full_runs", due_full, send_full, receive_full, fail_full};

const agent_operation_t agent_event_operation = {
    "sweep_events", due_sweep, send_events, receive_sweep, fail_sweep};

const agent_operation_t agent_copy_operation = {
    "sweep_copies", due_sweep, send_copies, receive_sweep, fail_sweep};

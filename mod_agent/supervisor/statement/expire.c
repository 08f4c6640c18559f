/* SPDX-License-Identifier: Apache-2.0 */
/* expire_threads, sweep_blobs and sweep_events; see expire.h. */
#include "expire.h"

#include <string.h>

#define INTERVAL apr_time_from_sec(10)
/* Between two sweeps, which lock a thread or take a fifth of a second. */
#define SWEEP_PAUSE apr_time_from_msec(100)
/* After a sweep that took too long. */
#define BLOB_LONG_PAUSE apr_time_from_sec(600)

static apr_time_t due_expire(void *part)
{
    const agent_expire_t *expire = part;

    return agent_worker_is_live(expire->worker) ? expire->due_at
                                                : AGENT_CLOCK_NEVER;
}

static const agent_statement_t expire_threads = {
    .name = "agent_expire_threads",
    .is_repeatable = true,
    .sql = "select * from agent.expire_threads()"};

static apr_status_t send_expire(void *part, agent_database_t *database,
                                agent_error_t **err)
{
    agent_expire_t *expire = part;

    expire->due_at = agent_database_after(expire->context, INTERVAL);
    expire->sent_at = expire->context->now;
    return agent_db_send(database->db, &expire_threads, NULL, err,
                         database->scratch);
}

static void receive_expire(void *part, const agent_db_result_t *result)
{
    agent_expire_t *expire = part;

    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_notify_relay(expire->notify, agent_db_value(result, row, 0));
    }
    /* Others use the connection for as long as this did. */
    if (agent_db_rows(result) > 0) {
        expire->due_at = 2 * expire->context->now - expire->sent_at;
    }
}

static void fail_expire(void *part, agent_failure_t failure)
{
    agent_expire_t *expire = part;

    expire->due_at = agent_database_after(expire->context, INTERVAL);
}

const agent_operation_t agent_expire_operation = {
    "expire_threads", due_expire, send_expire, receive_expire, fail_expire};

static apr_time_t due_blobs(void *part)
{
    const agent_expire_t *expire = part;

    return agent_worker_is_live(expire->worker) ? expire->blobs_at
                                                : AGENT_CLOCK_NEVER;
}

static const agent_statement_t sweep_blobs = {
    .name = "agent_sweep_blobs",
    .is_repeatable = true,
    .sql = "select agent.sweep_blobs()"};

static apr_status_t send_blobs(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    agent_expire_t *expire = part;

    expire->blobs_at = agent_database_after(expire->context, INTERVAL);
    return agent_db_send(database->db, &sweep_blobs, NULL, err,
                         database->scratch);
}

static void receive_blobs(void *part, const agent_db_result_t *result)
{
    agent_expire_t *expire = part;

    if (strcmp(agent_db_value(result, 0, 0), "0") != 0) {
        expire->blobs_at = agent_database_after(expire->context, SWEEP_PAUSE);
    }
}

static void fail_blobs(void *part, agent_failure_t failure)
{
    agent_expire_t *expire = part;

    /* It would take too long again. */
    expire->blobs_at = agent_database_after(
        expire->context,
        failure == AGENT_FAILURE_TIMEOUT ? BLOB_LONG_PAUSE : INTERVAL);
}

const agent_operation_t agent_blob_operation = {
    "sweep_blobs", due_blobs, send_blobs, receive_blobs, fail_blobs};

static apr_time_t due_events(void *part)
{
    const agent_expire_t *expire = part;

    return agent_worker_is_live(expire->worker) ? expire->events_at
                                                : AGENT_CLOCK_NEVER;
}

static const agent_statement_t sweep_events = {
    .name = "agent_sweep_events",
    .is_repeatable = true,
    .sql = "select agent.sweep_events()"};

static apr_status_t send_events(void *part, agent_database_t *database,
                                agent_error_t **err)
{
    agent_expire_t *expire = part;

    expire->events_at = agent_database_after(expire->context, INTERVAL);
    return agent_db_send(database->db, &sweep_events, NULL, err,
                         database->scratch);
}

static void receive_events(void *part, const agent_db_result_t *result)
{
    agent_expire_t *expire = part;

    if (strcmp(agent_db_value(result, 0, 0), "0") != 0) {
        expire->events_at = agent_database_after(expire->context, SWEEP_PAUSE);
    }
}

static void fail_events(void *part, agent_failure_t failure)
{
    agent_expire_t *expire = part;

    expire->events_at = agent_database_after(expire->context, INTERVAL);
}

const agent_operation_t agent_event_operation = {
    "sweep_events", due_events, send_events, receive_events, fail_events};

/* SPDX-License-Identifier: Apache-2.0 */
/* A connection and its operations; see database.h. */
#include "database.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../../core/backoff.h"
#include "../../core/clock.h"
#include "../../db/notice.h"
#include "../base/order.h"

#define FIRST_ENTRIES   32
#define CONNECT_TIMEOUT apr_time_from_sec(5)
#define FIRST_BACKOFF   apr_time_from_msec(100)
#define LONGEST_BACKOFF apr_time_from_sec(5)
/* After connections that were made and then lost. */
#define LONGEST_PAUSE apr_time_from_sec(1)

void agent_database_add(agent_database_t *database,
                        const agent_operation_t *operation, void *part)
{
    APR_ARRAY_PUSH(database->entries,
                   agent_operation_entry_t) = (agent_operation_entry_t){
        .operation = operation, .part = part};
}

apr_time_t agent_database_after(const agent_context_t *context,
                                apr_interval_time_t interval)
{
    return context->now + interval * 4 / 5
        + (apr_interval_time_t)(drand48() * (double)interval * 2 / 5);
}

apr_time_t agent_database_retry_at(const agent_context_t *context,
                                   agent_failure_t failure)
{
    /* Reconnecting is pause enough. */
    return failure == AGENT_FAILURE_LOST
        ? context->now
        : agent_database_after(
            context,
            apr_time_from_msec(agent_failure_is_expected(failure) ? 50 : 1000));
}

/* Closes the connection without failing its operation. */
static void disconnect(agent_database_t *database)
{
    if (database->db != NULL) {
        agent_db_close(database->db);
        database->db = NULL;
    }
    agent_poll_replace(&database->watch, -1);
    apr_pool_clear(database->pool);
    database->state = AGENT_DATABASE_DOWN;
}

void agent_database_close(agent_database_t *database, agent_failure_t failure)
{
    bool is_waited_for = database->state == AGENT_DATABASE_BUSY
        && database->operation != NULL;

    disconnect(database);
    if (database->lost_at == 0) {
        database->lost_at = database->context->now;
    }
    if (is_waited_for) {
        database->operation->fail(database->part, failure);
    }
    apr_pool_clear(database->scratch);
}

static const char *reason_of(const agent_error_t *err)
{
    return err == NULL ? "unknown" : err->cause ? err->cause : err->detail;
}

/* ---- connection states ---- */

static void postpone_connect(agent_database_t *database)
{
    database->connect_at = agent_database_after(
        database->context,
        agent_backoff_delay(database->failed_connects++, FIRST_BACKOFF,
                            LONGEST_BACKOFF));
    disconnect(database);
}

static void fail_connect(agent_database_t *database, const char *reason)
{
    agent_report_repeat(database->context, AGENT_LOG_ERR, "AGT0310", 0,
                        "cannot connect to the database: %s (%s connection)",
                        reason, database->settings.name);
    postpone_connect(database);
}

/* Nothing is claimed, saved or deleted there. */
static void refuse_database(agent_database_t *database, const char *region)
{
    agent_report_repeat(database->context, AGENT_LOG_ERR, "AGT0318", 0,
                        "the database belongs to region %s, this host to "
                        "region %s (AgentRegion): its runs are not executed",
                        region != NULL ? region : "none",
                        database->context->config->region);
    postpone_connect(database);
}

static void finish_connect(agent_database_t *database,
                           const agent_db_result_t *result)
{
    const agent_session_info_t info = agent_session_read(result);
    bool is_first = !database->was_connected;

    if (!agent_session_is_allowed(&info, database->context->config->region)) {
        refuse_database(database, info.region);
        return;
    }
    if (!is_first) {
        agent_report_repeat(database->context, AGENT_LOG_NOTICE, "AGT0312", 0,
                            "connected to the database again (%s connection)",
                            database->settings.name);
    }
    database->state = AGENT_DATABASE_IDLE;
    database->events = EPOLLIN;
    database->failed_connects = 0;
    database->connection++;
    database->was_connected = true;
    database->lost_at = 0;
    if (database->settings.on_connected != NULL) {
        database->settings.on_connected(database->settings.part, is_first,
                                        &info);
    }
}

static void begin_session(agent_database_t *database)
{
    agent_error_t *err = NULL;
    const char *params[] = {
        agent_session_limit(database->settings.statement_limit,
                            database->scratch),
        agent_session_limit(database->settings.lock_limit, database->scratch)};

    database->operation = NULL;
    database->state = AGENT_DATABASE_BUSY;
    database->deadline = database->context->now + database->settings.timeout;
    if (agent_db_send(database->db, &agent_session_begin, params, &err,
                      database->scratch)
        != APR_SUCCESS) {
        fail_connect(database, reason_of(err));
    }
}

/* ---- statements ---- */

/* At once after the first loss; after further ones in a row, of which each
 * would cost the server a new process, later and later. */
static apr_time_t reconnect_at(agent_database_t *database)
{
    int losses = database->losses++;

    return losses == 0
        ? database->context->now
        : agent_database_after(
            database->context,
            agent_backoff_delay(losses - 1, FIRST_BACKOFF, LONGEST_PAUSE));
}

static void lose_connection(agent_database_t *database, agent_failure_t failure,
                            const char *reason)
{
    agent_report_repeat(database->context, AGENT_LOG_WARNING, "AGT0311", 0,
                        "connection to the database lost: %s (%s connection)",
                        reason, database->settings.name);
    if (agent_db_notice_is_crash(database->db)) {
        database->crash_reported_at = database->context->now;
    }
    database->connect_at = reconnect_at(database);
    agent_database_close(database, failure);
}

static void fail_statement(agent_database_t *database, const agent_error_t *err)
{
    agent_failure_t failure = agent_failure_of(
        database->db, database->context->now - database->sent_at,
        database->limit);
    bool is_stale = agent_db_is_stale(database->db);

    if (database->operation == NULL) {
        fail_connect(database, reason_of(err));
        return;
    }
    if (failure == AGENT_FAILURE_LOST || is_stale
        || agent_db_is_over(database->db) || !agent_db_alive(database->db)) {
        lose_connection(database, failure, reason_of(err));
        /* A pooler in transaction mode does it all the time. */
        database->connect_at += is_stale ? FIRST_BACKOFF : 0;
        return;
    }
    database->state = AGENT_DATABASE_IDLE;
    agent_report_repeat(database->context,
                        agent_failure_is_expected(failure) ? AGENT_LOG_INFO
                                                           : AGENT_LOG_ERR,
                        "AGT0313", 0, "%s failed: %s",
                        database->operation->name, reason_of(err));
    database->operation->fail(database->part, failure);
}

static void take_result(agent_database_t *database,
                        const agent_db_result_t *result)
{
    if (database->operation != NULL) {
        database->answered_at = database->context->now;
        database->operation->receive(database->part, result);
        return;
    }
    finish_connect(database, result);
}

/* The connection may be lost after a result that is complete: the operation has
 * it, and the next statement would hang. A connection that outlives a statement
 * ends a row of losses; the statement that begins its session does not count.
 */
static void replace_lost(agent_database_t *database)
{
    if (database->state != AGENT_DATABASE_IDLE) {
        return;
    }
    if (!agent_db_alive(database->db)) {
        lose_connection(database, AGENT_FAILURE_LOST, "its state is unknown");
    }
    else if (database->operation != NULL) {
        database->losses = 0;
    }
}

static void step_receive(agent_database_t *database)
{
    agent_db_result_t *result = NULL;
    agent_error_t *err = NULL;

    switch (agent_db_receive(&result, database->db, &err, database->scratch)) {
    case AGENT_DB_WANT_READ:
        database->events = EPOLLIN;
        return;
    case AGENT_DB_WANT_WRITE:
        database->events = EPOLLIN | EPOLLOUT;
        return;
    case AGENT_DB_READY:
        database->state = AGENT_DATABASE_IDLE;
        database->events = EPOLLIN;
        take_result(database, result);
        replace_lost(database);
        break;
    default:
        database->events = EPOLLIN;
        fail_statement(database, err);
    }
    apr_pool_clear(database->scratch);
}

static void send_operation(agent_database_t *database,
                           agent_operation_entry_t *entry)
{
    agent_error_t *err = NULL;

    entry->last_statement = ++database->last_statement;
    database->operation = entry->operation;
    database->part = entry->part;
    database->state = AGENT_DATABASE_BUSY;
    database->sent_at = database->context->now;
    database->limit = database->settings.statement_limit;
    database->deadline = database->sent_at + database->settings.timeout;
    if (entry->operation->send(entry->part, database, &err) == APR_SUCCESS) {
        step_receive(database);
        return;
    }
    fail_statement(database, err);
    apr_pool_clear(database->scratch);
}

static apr_time_t send_next(agent_database_t *database)
{
    apr_time_t next;
    agent_operation_entry_t *entry = agent_operation_choose(
        database->entries, database->context->now, &next);

    if (entry == NULL) {
        return next;
    }
    send_operation(database, entry);
    return database->state == AGENT_DATABASE_BUSY ? database->deadline
                                                  : database->context->now;
}

/* ---- connecting ---- */

/* libpq resolves names, which may take a while: the limits and the pause of the
 * connection begin after it. */
static void take_time(const agent_database_t *database)
{
    database->context->now = agent_clock_now();
}

static void step_connect(agent_database_t *database)
{
    agent_error_t *err = NULL;
    agent_db_progress_t progress = agent_db_connect_step(database->db, &err,
                                                         database->pool);

    take_time(database);
    switch (progress) {
    case AGENT_DB_READY:
        begin_session(database);
        break;
    case AGENT_DB_WANT_READ:
        database->events = EPOLLIN;
        break;
    case AGENT_DB_WANT_WRITE:
        database->events = EPOLLOUT;
        break;
    default:
        fail_connect(database, reason_of(err));
    }
}

/* Another connection that is up; NULL: none. */
static const agent_db_t *find_beside(const agent_database_t *database)
{
    const agent_database_t *const *other = database->settings.others;

    while (other != NULL && *other != NULL
           && ((*other)->lost_at > 0 || !agent_db_alive((*other)->db))) {
        other++;
    }
    return other == NULL || *other == NULL ? NULL : (*other)->db;
}

static void start_connect(agent_database_t *database)
{
    agent_error_t *err = NULL;
    /* Each second attempt uses the name: the server may have moved. */
    const agent_db_t *beside = database->failed_connects % 2 == 0
        ? find_beside(database)
        : NULL;
    apr_status_t rv;

    database->state = AGENT_DATABASE_CONNECTING;
    /* libpq: wait for writing before the first PQconnectPoll(). */
    database->events = EPOLLOUT;
    rv = agent_db_connect(&database->db, database->context->config->conninfo,
                          "agent supervisor", beside, &err, database->pool);
    take_time(database);
    database->connect_until = database->context->now + CONNECT_TIMEOUT;
    if (rv != APR_SUCCESS) {
        fail_connect(database, reason_of(err));
        return;
    }
    database->deadline = database->context->now
        + agent_db_host_timeout(database->db, CONNECT_TIMEOUT);
}

/* False when the time for all hosts is over. */
static bool try_next_host(agent_database_t *database)
{
    if (database->connect_until <= database->context->now) {
        return false;
    }
    agent_db_skip_host(database->db);
    database->deadline = database->context->now
        + agent_db_host_timeout(database->db, CONNECT_TIMEOUT);
    return true;
}

/* ---- the loop ---- */

static void on_ready(void *part, void *item)
{
    agent_database_t *database = part;

    switch (database->state) {
    case AGENT_DATABASE_CONNECTING:
        step_connect(database);
        break;
    case AGENT_DATABASE_BUSY:
        step_receive(database);
        break;
    case AGENT_DATABASE_IDLE:
        /* Nothing was sent: the server closes the connection. */
        lose_connection(database, AGENT_FAILURE_LOST, "closed by the server");
        break;
    default:
        break;
    }
}

static void give_up(agent_database_t *database)
{
    if (database->state == AGENT_DATABASE_CONNECTING) {
        if (!try_next_host(database)) {
            fail_connect(database, "no answer in time");
        }
        return;
    }
    if (database->operation == NULL) {
        fail_connect(database, "no answer in time");
        return;
    }
    lose_connection(database, AGENT_FAILURE_LOST,
                    "a statement was not answered in time");
}

static apr_time_t step(agent_database_t *database)
{
    if ((database->state == AGENT_DATABASE_CONNECTING
         || database->state == AGENT_DATABASE_BUSY)
        && database->deadline <= database->context->now) {
        give_up(database);
    }
    switch (database->state) {
    case AGENT_DATABASE_DOWN:
        if (database->connect_at > database->context->now) {
            return database->connect_at;
        }
        start_connect(database);
        return database->state == AGENT_DATABASE_DOWN ? database->connect_at
                                                      : database->deadline;
    case AGENT_DATABASE_IDLE:
        return send_next(database);
    default:
        return database->deadline;
    }
}

/* Without its socket in the set, the connection would hang until the deadline
 * of its statement. */
static void fail_watch(agent_database_t *database, apr_status_t rv)
{
    char error[100];
    char reason[160];

    apr_strerror(rv, error, sizeof(error));
    apr_snprintf(reason, sizeof(reason), "its socket cannot be watched: %s",
                 error);
    if (database->state == AGENT_DATABASE_CONNECTING
        || (database->state == AGENT_DATABASE_BUSY
            && database->operation == NULL)) {
        fail_connect(database, reason);
        return;
    }
    lose_connection(database, AGENT_FAILURE_LOST, reason);
}

static apr_status_t watch(agent_database_t *database)
{
    int fd = database->state == AGENT_DATABASE_DOWN
        ? -1
        : agent_db_socket(database->db);

    if (database->state == AGENT_DATABASE_CONNECTING) {
        /* For the next host, or one without encryption. */
        agent_poll_replace(&database->watch, fd);
    }
    else if (fd != database->watch.fd) {
        /* libpq has closed it: its number may be another descriptor's now. */
        return APR_FROM_OS_ERROR(EBADF);
    }
    return agent_poll_set(database->poll, &database->watch, database->events);
}

apr_time_t agent_database_step(agent_database_t *database)
{
    apr_time_t next = step(database);
    apr_status_t rv = watch(database);

    if (rv != APR_SUCCESS) {
        fail_watch(database, rv);
        return database->connect_at;
    }
    return next;
}

void agent_database_init(agent_database_t *database, agent_context_t *context,
                         agent_poll_t *poll,
                         const agent_database_settings_t *settings)
{
    database->context = context;
    database->settings = *settings;
    database->poll = poll;
    database->lost_at = context->now;
    database->entries = apr_array_make(context->pool, FIRST_ENTRIES,
                                       sizeof(agent_operation_entry_t));
    database->watch = (agent_poll_watch_t){
        .fd = -1, .handler = on_ready, .part = database};
    apr_pool_create(&database->scratch, context->pool);
    apr_pool_create(&database->pool, context->pool);
}

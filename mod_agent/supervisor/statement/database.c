/* SPDX-License-Identifier: Apache-2.0 */
/* The connection and the turns on it; see database.h. */
#include "database.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../instance.h"

#define CONNECT_TIMEOUT apr_time_from_sec(5)
#define FIRST_BACKOFF   apr_time_from_msec(100)
#define LONGEST_BACKOFF apr_time_from_sec(5)

void agent_database_init(agent_supervisor_t *sv, agent_database_t *database,
                         const agent_operation_t *const *operations)
{
    database->operations = operations;
    apr_pool_create(&database->scratch, sv->pool);
    apr_pool_create(&database->pool, sv->pool);
}

apr_time_t agent_database_after(agent_supervisor_t *sv,
                                apr_interval_time_t interval)
{
    return sv->now + interval * 4 / 5
        + (apr_interval_time_t)(drand48() * (double)interval * 2 / 5);
}

bool agent_failure_is_transient(agent_failure_t failure)
{
    return failure == AGENT_FAILURE_RETRY || failure == AGENT_FAILURE_SETUP;
}

apr_time_t agent_database_retry_at(agent_supervisor_t *sv,
                                   agent_failure_t failure)
{
    switch (failure) {
    case AGENT_FAILURE_LOST:
        /* The new connection is delay enough. */
        return sv->now;
    case AGENT_FAILURE_RETRY:
        return agent_database_after(sv, apr_time_from_msec(50));
    default:
        return agent_database_after(sv, apr_time_from_sec(1));
    }
}

/* The connection alone. */
static void disconnect(agent_database_t *database)
{
    if (database->db != NULL) {
        agent_db_close(database->db);
        database->db = NULL;
    }
    apr_pool_clear(database->pool);
    database->state = AGENT_DATABASE_DOWN;
}

void agent_database_close(agent_supervisor_t *sv, agent_database_t *database,
                          agent_failure_t failure)
{
    bool is_waited_for = database->state == AGENT_DATABASE_BUSY
        && database->operation != NULL;

    disconnect(database);
    if (is_waited_for) {
        database->operation->fail(sv, failure);
    }
    apr_pool_clear(database->scratch);
}

int agent_database_fd(const agent_database_t *database)
{
    return database->db != NULL ? agent_db_socket(database->db) : -1;
}

static const char *reason_of(const agent_error_t *err)
{
    return err == NULL ? "unknown" : err->cause ? err->cause : err->detail;
}

/*
 * What a statement may take until the database cancels it, in parts of a
 * lease: a renewal may wait for one on the first connection, and must be there
 * after 13 of 20 with all that a quarter of a lease has passed before it.
 */
static apr_interval_time_t statement_limit(const agent_supervisor_t *sv,
                                           const agent_database_t *database)
{
    apr_interval_time_t lease = apr_time_from_sec(sv->config->lease_sec);

    return database == &sv->database ? lease / 4 : lease / 2;
}

/* What it may take until the connection is given up: a little longer, since
 * what the database has cancelled is known not to be executed. */
static apr_interval_time_t get_patience(const agent_supervisor_t *sv,
                                        const agent_database_t *database)
{
    return statement_limit(sv, database)
        + apr_time_from_sec(sv->config->lease_sec) / 10;
}

/* ---- connected or not ---- */

static void fail_connect(agent_supervisor_t *sv, agent_database_t *database,
                         const char *reason)
{
    apr_interval_time_t wait = FIRST_BACKOFF;

    for (int i = 0; i < database->failed_connects && wait < LONGEST_BACKOFF;
         i++) {
        wait *= 2;
    }
    database->failed_connects++;
    database->connect_at = agent_database_after(
        sv, wait < LONGEST_BACKOFF ? wait : LONGEST_BACKOFF);
    agent_report_repeat(sv, AGENT_LOG_ERR, "AGT0310", 0,
                        "cannot connect to the database: %s", reason);
    disconnect(database);
}

static void finish_connect(agent_supervisor_t *sv, agent_database_t *database)
{
    if (database->was_connected) {
        agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0312", 0,
                           "connected to the database again");
        /* Whichever connection is first. */
        agent_worker_delay_sweep(sv);
    }
    database->state = AGENT_DATABASE_IDLE;
    database->events = POLLIN;
    database->failed_connects = 0;
    database->was_connected = true;
    if (database == &sv->database) {
        agent_worker_reconnected(sv);
    }
}

/* Replaces the role's own timeouts: under one of a second, a batch that takes
 * two would be sent for ever. */
static void send_limits(agent_supervisor_t *sv, agent_database_t *database)
{
    agent_error_t *err = NULL;
    const char *params[] = {
        apr_psprintf(database->scratch, "%" APR_TIME_T_FMT,
                     apr_time_as_msec(statement_limit(sv, database)))};

    database->operation = NULL;
    database->state = AGENT_DATABASE_BUSY;
    database->deadline = sv->now + get_patience(sv, database);
    if (agent_db_send(database->db, AGENT_SQL_SET_LIMITS, params, &err,
                      database->scratch)
        != APR_SUCCESS) {
        fail_connect(sv, database, reason_of(err));
    }
}

/* Once: the operator's choice, which the other promises depend on. */
static void warn_of_losses(agent_supervisor_t *sv,
                           const agent_database_t *database,
                           const char *settings)
{
    if (settings != NULL && database == &sv->database
        && !database->was_connected) {
        agent_report_write(sv, AGENT_LOG_WARNING, "AGT0316", 0,
                           "a crash of the database may lose runs that were "
                           "acknowledged: %s",
                           settings);
    }
}

/* ---- statements ---- */

/* states: whole ones or classes, ended by NULL. */
static bool is_one_of(const char *state, const char *const *states)
{
    for (; *states != NULL; states++) {
        if (strncmp(state, *states, strlen(*states)) == 0) {
            return true;
        }
    }
    return false;
}

static agent_failure_t classify(const agent_database_t *database)
{
    /* Schema or rights are missing: an installation in progress, or undone. */
    static const char *const setup[] = {"3F000", "42883", "42P01", "42501",
                                        NULL};
    static const char *const data[] = {"21", "22", "23", "54",
                                       "MA", "P0", NULL};
    static const char *const retry[] = {"25", "40", "53", "55",
                                        "57", "58", NULL};
    static const char *const timeout[] = {"57014", NULL};
    const char *state = agent_db_sqlstate(database->db);

    if (state[0] == '\0') {
        return AGENT_FAILURE_LOST;
    }
    if (is_one_of(state, setup)) {
        return AGENT_FAILURE_SETUP;
    }
    if (is_one_of(state, data)) {
        return AGENT_FAILURE_DATA;
    }
    if (is_one_of(state, timeout)) {
        return AGENT_FAILURE_TIMEOUT;
    }
    return is_one_of(state, retry) ? AGENT_FAILURE_RETRY : AGENT_FAILURE_OTHER;
}

static void lose_connection(agent_supervisor_t *sv, agent_database_t *database,
                            agent_failure_t failure, const char *reason)
{
    agent_report_repeat(sv, AGENT_LOG_WARNING, "AGT0311", 0,
                        "connection to the database lost: %s", reason);
    database->connect_at = sv->now;
    agent_database_close(sv, database, failure);
}

static void fail_statement(agent_supervisor_t *sv, agent_database_t *database,
                           const agent_error_t *err)
{
    agent_failure_t failure = classify(database);
    /* 57P01 .. 57P03: the server closes the connection next. */
    bool farewell = strncmp(agent_db_sqlstate(database->db), "57P", 3) == 0;

    if (database->operation == NULL) {
        fail_connect(sv, database, "its limits could not be set");
        return;
    }
    if (farewell || !agent_db_alive(database->db)) {
        lose_connection(sv, database, failure, reason_of(err));
        return;
    }
    database->state = AGENT_DATABASE_IDLE;
    agent_report_repeat(
        sv, failure == AGENT_FAILURE_RETRY ? AGENT_LOG_INFO : AGENT_LOG_ERR,
        "AGT0313", 0, "%s failed: %s", database->operation->name,
        reason_of(err));
    database->operation->fail(sv, failure);
}

static void take_result(agent_supervisor_t *sv, agent_database_t *database,
                        const agent_db_result_t *result)
{
    if (database->operation != NULL) {
        database->operation->receive(sv, result);
        return;
    }
    warn_of_losses(sv, database, agent_db_value(result, 0, 0));
    finish_connect(sv, database);
}

static void step_receive(agent_supervisor_t *sv, agent_database_t *database)
{
    agent_db_result_t *result = NULL;
    agent_error_t *err = NULL;

    switch (agent_db_receive(&result, database->db, &err, database->scratch)) {
    case AGENT_DB_WANT_READ:
        database->events = POLLIN;
        return;
    case AGENT_DB_WANT_WRITE:
        database->events = POLLIN | POLLOUT;
        return;
    case AGENT_DB_READY:
        database->state = AGENT_DATABASE_IDLE;
        database->events = POLLIN;
        take_result(sv, database, result);
        break;
    default:
        database->events = POLLIN;
        fail_statement(sv, database, err);
    }
    apr_pool_clear(database->scratch);
}

static void send_operation(agent_supervisor_t *sv, agent_database_t *database,
                           const agent_operation_t *operation)
{
    agent_error_t *err = NULL;

    database->operation = operation;
    database->state = AGENT_DATABASE_BUSY;
    database->deadline = sv->now + get_patience(sv, database);
    if (operation->send(sv, database, &err) == APR_SUCCESS) {
        step_receive(sv, database);
        return;
    }
    fail_statement(sv, database, err);
    apr_pool_clear(database->scratch);
}

/*
 * A renewal goes before everything. Of the rest that is due, what was sent
 * longest ago: save_batch may be due all the time and must not keep others
 * waiting, nor they it. Between equals the order of the table decides.
 */
static const agent_operation_t *choose(agent_supervisor_t *sv,
                                       agent_database_t *database,
                                       apr_time_t *next)
{
    apr_uint64_t *turns = database->turns;
    int best = -1;

    *next = AGENT_NEVER;
    for (int i = 0; database->operations[i] != NULL; i++) {
        apr_time_t due = database->operations[i]->due(sv);

        if (due > sv->now) {
            *next = due < *next ? due : *next;
        }
        else if (best < 0
                 || (database->operations[best] != &agent_renew_operation
                     && turns[i] < turns[best])) {
            best = i;
        }
    }
    if (best < 0) {
        return NULL;
    }
    turns[best] = ++database->last_turn;
    return database->operations[best];
}

static apr_time_t send_next(agent_supervisor_t *sv, agent_database_t *database)
{
    apr_time_t next;
    const agent_operation_t *operation = choose(sv, database, &next);

    if (operation == NULL) {
        return next;
    }
    send_operation(sv, database, operation);
    return database->state == AGENT_DATABASE_BUSY ? database->deadline
                                                  : sv->now;
}

/* ---- connecting ---- */

static void step_connect(agent_supervisor_t *sv, agent_database_t *database)
{
    agent_error_t *err = NULL;

    switch (agent_db_connect_step(database->db, &err, database->pool)) {
    case AGENT_DB_READY:
        send_limits(sv, database);
        break;
    case AGENT_DB_WANT_READ:
        database->events = POLLIN;
        break;
    case AGENT_DB_WANT_WRITE:
        database->events = POLLOUT;
        break;
    default:
        fail_connect(sv, database, reason_of(err));
    }
}

static void start_connect(agent_supervisor_t *sv, agent_database_t *database)
{
    agent_error_t *err = NULL;

    database->state = AGENT_DATABASE_CONNECTING;
    /* libpq: after the start wait as if it had asked for writing. */
    database->events = POLLOUT;
    database->connect_until = sv->now + CONNECT_TIMEOUT;
    if (agent_db_connect(&database->db, sv->config->conninfo,
                         "agent supervisor", &err, database->pool)
        != APR_SUCCESS) {
        fail_connect(sv, database, reason_of(err));
        return;
    }
    database->deadline = sv->now
        + agent_db_connect_timeout_per_host(database->db, CONNECT_TIMEOUT);
}

/* False when all hosts have had their time. */
static bool try_next_host(agent_supervisor_t *sv, agent_database_t *database)
{
    if (database->connect_until <= sv->now) {
        return false;
    }
    agent_db_next_host(database->db);
    database->deadline = sv->now
        + agent_db_connect_timeout_per_host(database->db, CONNECT_TIMEOUT);
    return true;
}

/* ---- the loop ---- */

void agent_database_ready(agent_supervisor_t *sv, agent_database_t *database)
{
    switch (database->state) {
    case AGENT_DATABASE_CONNECTING:
        step_connect(sv, database);
        break;
    case AGENT_DATABASE_BUSY:
        step_receive(sv, database);
        break;
    case AGENT_DATABASE_IDLE:
        /* Nobody asked, so it is the server's farewell. */
        lose_connection(sv, database, AGENT_FAILURE_LOST,
                        "closed by the server");
        break;
    default:
        break;
    }
}

static void give_up(agent_supervisor_t *sv, agent_database_t *database)
{
    if (database->state == AGENT_DATABASE_CONNECTING) {
        if (!try_next_host(sv, database)) {
            fail_connect(sv, database, "no answer in time");
        }
        return;
    }
    if (database->operation == NULL) {
        fail_connect(sv, database, "no answer in time");
        return;
    }
    lose_connection(sv, database, AGENT_FAILURE_LOST,
                    "a statement was not answered in time");
}

apr_time_t agent_database_step(agent_supervisor_t *sv,
                               agent_database_t *database)
{
    if ((database->state == AGENT_DATABASE_CONNECTING
         || database->state == AGENT_DATABASE_BUSY)
        && database->deadline <= sv->now) {
        give_up(sv, database);
    }
    switch (database->state) {
    case AGENT_DATABASE_DOWN:
        if (database->connect_at > sv->now) {
            return database->connect_at;
        }
        start_connect(sv, database);
        return database->state == AGENT_DATABASE_DOWN ? database->connect_at
                                                      : database->deadline;
    case AGENT_DATABASE_IDLE:
        return send_next(sv, database);
    default:
        return database->deadline;
    }
}

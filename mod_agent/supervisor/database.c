/* SPDX-License-Identifier: Apache-2.0 */
/* The connection and the turns on it; see database.h. */
#include "database.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "state.h"

#define CONNECT_TIMEOUT apr_time_from_sec(5)
#define FIRST_BACKOFF   apr_time_from_msec(100)
#define LONGEST_BACKOFF apr_time_from_sec(5)

void agent_database_init(agent_supervisor_t *sv)
{
    apr_pool_create(&sv->database.scratch, sv->pool);
    apr_pool_create(&sv->database.pool, sv->pool);
}

apr_time_t agent_database_after(agent_supervisor_t *sv,
                                apr_interval_time_t interval)
{
    return sv->now + interval * 4 / 5
        + (apr_interval_time_t)(drand48() * (double)interval * 2 / 5);
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

void agent_database_close(agent_supervisor_t *sv)
{
    agent_database_t *database = &sv->database;

    if (database->db != NULL) {
        agent_db_close(database->db);
        database->db = NULL;
    }
    apr_pool_clear(database->pool);
    database->state = AGENT_DATABASE_DOWN;
}

int agent_database_fd(const agent_supervisor_t *sv)
{
    return sv->database.db != NULL ? agent_db_socket(sv->database.db) : -1;
}

static const char *reason_of(const agent_error_t *err)
{
    return err == NULL ? "unknown" : err->cause ? err->cause : err->detail;
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

static agent_failure_t classify(const agent_supervisor_t *sv)
{
    /* Schema or rights are missing: an installation in progress, or undone. */
    static const char *const setup[] = {"3F000", "42883", "42P01", "42501",
                                        NULL};
    static const char *const data[] = {"21", "22", "23", "54",
                                       "MA", "P0", NULL};
    static const char *const retry[] = {"25", "40", "53", "55",
                                        "57", "58", NULL};
    const char *state = agent_db_sqlstate(sv->database.db);

    if (state[0] == '\0') {
        return AGENT_FAILURE_LOST;
    }
    if (is_one_of(state, setup)) {
        return AGENT_FAILURE_SETUP;
    }
    if (is_one_of(state, data)) {
        return AGENT_FAILURE_DATA;
    }
    return is_one_of(state, retry) ? AGENT_FAILURE_RETRY : AGENT_FAILURE_OTHER;
}

static void lose_connection(agent_supervisor_t *sv, const char *reason)
{
    agent_report_repeat(sv, AGENT_LOG_WARNING, "AGT0311", 0,
                        "connection to the database lost: %s", reason);
    agent_database_close(sv);
    sv->database.connect_at = sv->now;
}

static void fail_statement(agent_supervisor_t *sv, const agent_error_t *err)
{
    agent_database_t *database = &sv->database;
    agent_failure_t failure = classify(sv);
    /* 57P01 .. 57P03: the server closes the connection next. */
    bool farewell = strncmp(agent_db_sqlstate(database->db), "57P", 3) == 0;

    database->state = AGENT_DATABASE_IDLE;
    if (farewell || !agent_db_alive(database->db)) {
        lose_connection(sv, reason_of(err));
    }
    else {
        agent_report_repeat(
            sv, failure == AGENT_FAILURE_RETRY ? AGENT_LOG_INFO : AGENT_LOG_ERR,
            "AGT0313", 0, "%s failed: %s", database->operation->name,
            reason_of(err));
    }
    database->operation->fail(sv, failure);
}

static void step_receive(agent_supervisor_t *sv)
{
    agent_database_t *database = &sv->database;
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
        database->operation->receive(sv, result);
        break;
    default:
        database->events = POLLIN;
        fail_statement(sv, err);
    }
    apr_pool_clear(database->scratch);
}

/* What a statement may take: renewals wait behind it. */
static apr_interval_time_t get_patience(const agent_supervisor_t *sv)
{
    return apr_time_from_sec(sv->config->lease_sec) / 2;
}

static void send_operation(agent_supervisor_t *sv,
                           const agent_operation_t *operation)
{
    agent_database_t *database = &sv->database;
    agent_error_t *err = NULL;

    database->operation = operation;
    database->state = AGENT_DATABASE_BUSY;
    database->deadline = sv->now + get_patience(sv);
    if (operation->send(sv, &err) == APR_SUCCESS) {
        step_receive(sv);
        return;
    }
    fail_statement(sv, err);
    apr_pool_clear(database->scratch);
}

/*
 * A renewal goes before everything. Of the rest that is due, what was sent
 * longest ago: save_batch may be due all the time and must not keep others
 * waiting, nor they it. Between equals the order of the table decides.
 */
static const agent_operation_t *choose(agent_supervisor_t *sv, apr_time_t *next)
{
    apr_uint64_t *turns = sv->database.turns;
    int best = -1;

    *next = AGENT_NEVER;
    for (int i = 0; agent_operations[i] != NULL; i++) {
        apr_time_t due = agent_operations[i]->due(sv);

        if (due > sv->now) {
            *next = due < *next ? due : *next;
        }
        else if (best < 0
                 || (best != AGENT_OPERATION_RENEW && turns[i] < turns[best])) {
            best = i;
        }
    }
    if (best < 0) {
        return NULL;
    }
    turns[best] = ++sv->database.last_turn;
    return agent_operations[best];
}

static apr_time_t send_next(agent_supervisor_t *sv)
{
    const agent_database_t *database = &sv->database;
    apr_time_t next;
    const agent_operation_t *operation = choose(sv, &next);

    if (operation == NULL) {
        return next;
    }
    send_operation(sv, operation);
    return database->state == AGENT_DATABASE_BUSY ? database->deadline
                                                  : sv->now;
}

/* ---- connecting ---- */

static void fail_connect(agent_supervisor_t *sv, const char *reason)
{
    agent_database_t *database = &sv->database;
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
    agent_database_close(sv);
}

static void finish_connect(agent_supervisor_t *sv)
{
    agent_database_t *database = &sv->database;

    if (database->was_connected) {
        agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0312", 0,
                           "connected to the database again");
    }
    database->state = AGENT_DATABASE_IDLE;
    database->events = POLLIN;
    database->failed_connects = 0;
    database->was_connected = true;
    agent_worker_reconnected(sv);
}

/* The role's own limits are made for others: under one of a second, a batch
 * that takes two would be sent for ever. */
static apr_status_t send_limits(agent_supervisor_t *sv, agent_error_t **err)
{
    agent_database_t *database = &sv->database;
    const char *params[] = {apr_psprintf(database->scratch, "%" APR_TIME_T_FMT,
                                         apr_time_as_msec(get_patience(sv)))};

    return agent_db_send(database->db, AGENT_SQL_SET_LIMITS, params, err,
                         database->scratch);
}

/* Once: the operator's choice, which the other promises depend on. */
static void warn_of_losses(agent_supervisor_t *sv, const char *settings)
{
    if (settings != NULL && !sv->database.was_connected) {
        agent_report_write(sv, AGENT_LOG_WARNING, "AGT0316", 0,
                           "a crash of the database may lose runs that were "
                           "acknowledged: %s",
                           settings);
    }
}

static void receive_limits(agent_supervisor_t *sv,
                           const agent_db_result_t *result)
{
    warn_of_losses(sv, agent_db_value(result, 0, 0));
    finish_connect(sv);
}

static void fail_limits(agent_supervisor_t *sv, agent_failure_t failure)
{
    fail_connect(sv, "its limits could not be set");
}

/* Not one of agent_operations: it comes before them. */
static const agent_operation_t limits_operation = {.name = "set_config",
                                                   .send = send_limits,
                                                   .receive = receive_limits,
                                                   .fail = fail_limits};

static void step_connect(agent_supervisor_t *sv)
{
    agent_database_t *database = &sv->database;
    agent_error_t *err = NULL;

    switch (agent_db_connect_step(database->db, &err, database->pool)) {
    case AGENT_DB_READY:
        send_operation(sv, &limits_operation);
        break;
    case AGENT_DB_WANT_READ:
        database->events = POLLIN;
        break;
    case AGENT_DB_WANT_WRITE:
        database->events = POLLOUT;
        break;
    default:
        fail_connect(sv, reason_of(err));
    }
}

static void start_connect(agent_supervisor_t *sv)
{
    agent_database_t *database = &sv->database;
    agent_error_t *err = NULL;

    database->state = AGENT_DATABASE_CONNECTING;
    /* libpq: after the start wait as if it had asked for writing. */
    database->events = POLLOUT;
    database->connect_until = sv->now + CONNECT_TIMEOUT;
    if (agent_db_connect(&database->db, sv->config->conninfo,
                         "agent supervisor", &err, database->pool)
        != APR_SUCCESS) {
        fail_connect(sv, reason_of(err));
        return;
    }
    database->deadline = sv->now
        + agent_db_host_share(database->db, CONNECT_TIMEOUT);
}

/* False when all hosts have had their time. */
static bool try_next_host(agent_supervisor_t *sv)
{
    agent_database_t *database = &sv->database;

    if (database->connect_until <= sv->now) {
        return false;
    }
    agent_db_next_host(database->db);
    database->deadline = sv->now
        + agent_db_host_share(database->db, CONNECT_TIMEOUT);
    return true;
}

/* ---- the loop ---- */

void agent_database_ready(agent_supervisor_t *sv)
{
    switch (sv->database.state) {
    case AGENT_DATABASE_CONNECTING:
        step_connect(sv);
        break;
    case AGENT_DATABASE_BUSY:
        step_receive(sv);
        break;
    case AGENT_DATABASE_IDLE:
        /* Nobody asked, so it is the server's farewell. */
        lose_connection(sv, "closed by the server");
        break;
    default:
        break;
    }
}

static void give_up(agent_supervisor_t *sv)
{
    agent_database_t *database = &sv->database;

    if (database->state == AGENT_DATABASE_CONNECTING) {
        if (!try_next_host(sv)) {
            fail_connect(sv, "no answer in time");
        }
        return;
    }
    lose_connection(sv, "a statement was not answered in time");
    database->operation->fail(sv, AGENT_FAILURE_LOST);
    apr_pool_clear(database->scratch);
}

apr_time_t agent_database_step(agent_supervisor_t *sv)
{
    agent_database_t *database = &sv->database;

    if ((database->state == AGENT_DATABASE_CONNECTING
         || database->state == AGENT_DATABASE_BUSY)
        && database->deadline <= sv->now) {
        give_up(sv);
    }
    switch (database->state) {
    case AGENT_DATABASE_DOWN:
        if (database->connect_at > sv->now) {
            return database->connect_at;
        }
        start_connect(sv);
        return database->state == AGENT_DATABASE_DOWN ? database->connect_at
                                                      : database->deadline;
    case AGENT_DATABASE_IDLE:
        return send_next(sv);
    default:
        return database->deadline;
    }
}

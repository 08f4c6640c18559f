/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements over one PostgreSQL connection; see query.h.
 *
 * libpq's non-blocking calls throughout: the waiting call is the non-blocking
 * steps with a poll between them, so that no server, however stuck, holds a
 * thread longer than the limits say.
 */
#include "query.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>
#include <libpq-fe.h>

/* The client waits a little longer than the server's statement_timeout, so
 * that the server's own, repeatable answer comes first. */
#define GRACE apr_time_from_msec(500)
/* A statement that lost a dead-lock is tried again so often. */
#define MAX_TRIES 3

struct agent_db_t {
    PGconn *conn;
    agent_db_limits_t limits;
    /* The backend for which prepared[] holds; 0 = none yet. */
    int backend_pid;
    bool prepared[AGENT_SQL_COUNT];
    /* A statement was given up half-way: only a new connection helps. */
    bool broken;
    /* Connecting by PQreset rather than PQconnect. */
    bool resetting;
    /* The last attempt to connect again failed. */
    bool unreachable;
    /* PQflush has not yet sent all. */
    bool flushing;
    /* The result being received, kept until the last one came. */
    PGresult *partial;
    char sqlstate[6];
};

struct agent_db_result_t {
    PGresult *rows;
};

typedef struct statement_row_t {
    const char *name;
    int params;
    bool repeatable;
    const char *sql;
} statement_row_t;

#define AGENT_STATEMENT(id, params, repeatable, sql)                           \
    {"agent_" #id, params, repeatable, sql},
static const statement_row_t statement_rows[] = {
#include "statements.def"
};
#undef AGENT_STATEMENT

void agent_db_discard(void *rows)
{
    PQclear(rows);
}

static apr_status_t clear_result(void *rows)
{
    PQclear(rows);
    return APR_SUCCESS;
}

static agent_db_result_t *keep_result(PGresult *rows, apr_pool_t *pool)
{
    agent_db_result_t *result = apr_pcalloc(pool, sizeof(*result));

    result->rows = rows;
    apr_pool_cleanup_register(pool, rows, clear_result, apr_pool_cleanup_null);
    return result;
}

int agent_db_rows(const agent_db_result_t *result)
{
    return PQntuples(result->rows);
}

const char *agent_db_value(const agent_db_result_t *result, int row, int column)
{
    return PQgetisnull(result->rows, row, column)
        ? NULL
        : PQgetvalue(result->rows, row, column);
}

bool agent_db_alive(const agent_db_t *db)
{
    return db->conn != NULL && !db->broken
        && PQstatus(db->conn) == CONNECTION_OK;
}

bool agent_db_unreachable(const agent_db_t *db)
{
    return db->unreachable;
}

const char *agent_db_sqlstate(const agent_db_t *db)
{
    return db->sqlstate;
}

int agent_db_socket(const agent_db_t *db)
{
    return db->conn != NULL ? PQsocket(db->conn) : -1;
}

/* libpq's messages end in a newline. */
static const char *copy_message(const char *message, apr_pool_t *pool)
{
    char *copy = apr_pstrdup(pool, message ? message : "");

    for (char *p = copy + strlen(copy); p > copy && p[-1] == '\n'; p--) {
        p[-1] = '\0';
    }
    return copy;
}

static apr_status_t fail_lost(agent_db_t *db, agent_error_t **err,
                              apr_pool_t *pool)
{
    db->sqlstate[0] = '\0';
    db->broken = true;
    return agent_error_set(err, AGENT_E_UNAVAILABLE, NULL,
                           copy_message(PQerrorMessage(db->conn), pool), pool);
}

static apr_status_t fail_late(agent_db_t *db, agent_error_t **err,
                              apr_pool_t *pool)
{
    db->sqlstate[0] = '\0';
    db->broken = true;
    return agent_error_set(err, AGENT_E_TIMED_OUT, NULL,
                           "no answer from PostgreSQL in time", pool);
}

static apr_status_t fail_result(agent_db_t *db, const PGresult *rows,
                                agent_error_t **err, apr_pool_t *pool)
{
    const char *state = PQresultErrorField(rows, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(rows, PG_DIAG_MESSAGE_PRIMARY);

    if (state == NULL) {
        return fail_lost(db, err, pool);
    }
    apr_cpystrn(db->sqlstate, state, sizeof(db->sqlstate));
    return agent_error_set(
        err, agent_error_from_sqlstate(state), NULL,
        apr_pstrcat(pool, state, ": ", copy_message(message, pool), NULL),
        pool);
}

/* Waits for the socket until deadline; false when that passed. */
static bool wait_socket(const agent_db_t *db, agent_db_progress_t want,
                        apr_time_t deadline)
{
    struct pollfd socket = {.fd = PQsocket(db->conn), .events = POLLIN};
    apr_interval_time_t left = deadline - apr_time_now();

    if (want == AGENT_DB_WANT_WRITE) {
        socket.events = POLLIN | POLLOUT;
    }
    if (left < 0 || socket.fd < 0) {
        return false;
    }
    return poll(&socket, 1, (int)apr_time_as_msec(left) + 1) > 0;
}

/* ---- connecting ---- */

static apr_status_t finish_connection(void *baton)
{
    agent_db_close(baton);
    return APR_SUCCESS;
}

void agent_db_close(agent_db_t *db)
{
    if (db->partial != NULL) {
        PQclear(db->partial);
        db->partial = NULL;
    }
    if (db->conn != NULL) {
        PQfinish(db->conn);
        db->conn = NULL;
    }
}

agent_db_t *agent_db_wrap(void *native, const agent_db_limits_t *limits,
                          apr_pool_t *pool)
{
    agent_db_t *db = apr_pcalloc(pool, sizeof(*db));

    db->conn = native;
    db->limits = *limits;
    return db;
}

apr_status_t agent_db_connect(agent_db_t **out, const char *conninfo,
                              const char *application_name, agent_error_t **err,
                              apr_pool_t *pool)
{
    /* Ours first: what conninfo says about them wins. The keepalives find a
     * half-open connection, which nothing else would. */
    const char *const keys[] = {"connect_timeout",     "keepalives_idle",
                                "keepalives_interval", "keepalives_count",
                                "tcp_user_timeout",    "dbname",
                                "application_name",    NULL};
    const char *const values[] = {
        "5", "10", "5", "3", "20000", conninfo, application_name, NULL};
    agent_db_t *db = apr_pcalloc(pool, sizeof(*db));

    db->conn = PQconnectStartParams(keys, values, 1);
    *out = db;
    apr_pool_cleanup_register(pool, db, finish_connection,
                              apr_pool_cleanup_null);
    if (db->conn == NULL || PQstatus(db->conn) == CONNECTION_BAD) {
        return fail_lost(db, err, pool);
    }
    return APR_SUCCESS;
}

agent_db_progress_t agent_db_connect_step(agent_db_t *db, agent_error_t **err,
                                          apr_pool_t *pool)
{
    PostgresPollingStatusType status = db->resetting ? PQresetPoll(db->conn)
                                                     : PQconnectPoll(db->conn);

    switch (status) {
    case PGRES_POLLING_READING:
        return AGENT_DB_WANT_READ;
    case PGRES_POLLING_WRITING:
        return AGENT_DB_WANT_WRITE;
    case PGRES_POLLING_OK:
        db->broken = false;
        PQsetnonblocking(db->conn, 1);
        return AGENT_DB_READY;
    default:
        fail_lost(db, err, pool);
        return AGENT_DB_FAILED;
    }
}

static apr_status_t try_reset(agent_db_t *db, agent_error_t **err,
                              apr_pool_t *pool)
{
    apr_time_t deadline = apr_time_now() + db->limits.connect_timeout;
    agent_db_progress_t progress = AGENT_DB_WANT_WRITE;

    db->backend_pid = 0;
    db->resetting = true;
    if (PQresetStart(db->conn) == 0) {
        return fail_lost(db, err, pool);
    }
    while (progress != AGENT_DB_READY) {
        if (!wait_socket(db, progress, deadline)) {
            return fail_lost(db, err, pool);
        }
        progress = agent_db_connect_step(db, err, pool);
        if (progress == AGENT_DB_FAILED) {
            return APR_EGENERAL;
        }
    }
    return APR_SUCCESS;
}

static apr_status_t reset_connection(agent_db_t *db, agent_error_t **err,
                                     apr_pool_t *pool)
{
    apr_status_t rv = try_reset(db, err, pool);

    db->unreachable = rv != APR_SUCCESS;
    return rv;
}

/*
 * An idle connection has nothing to read; if it has, that is the server's
 * farewell (or news so rare that a new connection costs less than telling
 * them apart).
 */
static bool is_deaf(const agent_db_t *db)
{
    struct pollfd socket = {.fd = PQsocket(db->conn), .events = POLLIN};

    return db->broken || PQstatus(db->conn) != CONNECTION_OK || socket.fd < 0
        || poll(&socket, 1, 0) != 0;
}

/* ---- sending and receiving ---- */

static apr_status_t start_receiving(agent_db_t *db, int sent,
                                    agent_error_t **err, apr_pool_t *pool)
{
    db->sqlstate[0] = '\0';
    db->flushing = true;
    return sent ? APR_SUCCESS : fail_lost(db, err, pool);
}

apr_status_t agent_db_send(agent_db_t *db, agent_statement_t statement,
                           const char *const *params, agent_error_t **err,
                           apr_pool_t *pool)
{
    const statement_row_t *row = &statement_rows[statement];

    return start_receiving(db,
                           PQsendQueryParams(db->conn, row->sql, row->params,
                                             NULL, params, NULL, NULL, 0),
                           err, pool);
}

/* An error after rows counts, and of two errors the first: the farewell of a
 * terminated backend comes before the loss of the connection. */
static void keep_first_error(agent_db_t *db, PGresult *next)
{
    if (db->partial != NULL
        && PQresultStatus(db->partial) == PGRES_FATAL_ERROR) {
        PQclear(next);
        return;
    }
    if (db->partial != NULL) {
        PQclear(db->partial);
    }
    db->partial = next;
}

/* Takes what has come; WANT_READ while more must come. */
static agent_db_progress_t take_results(agent_db_t *db)
{
    while (!PQisBusy(db->conn)) {
        PGresult *next = PQgetResult(db->conn);

        if (next == NULL) {
            return AGENT_DB_READY;
        }
        keep_first_error(db, next);
    }
    return AGENT_DB_WANT_READ;
}

agent_db_progress_t agent_db_receive(agent_db_result_t **result, agent_db_t *db,
                                     agent_error_t **err, apr_pool_t *pool)
{
    agent_db_progress_t progress;
    PGresult *rows;

    if (db->flushing) {
        int left = PQflush(db->conn);

        if (left > 0) {
            /* The server may have to be read before it reads on. */
            PQconsumeInput(db->conn);
            return AGENT_DB_WANT_WRITE;
        }
        /* A failed flush shows in what is received. */
        db->flushing = false;
    }
    /* A failed read leaves its error as the result to take. */
    PQconsumeInput(db->conn);
    progress = take_results(db);
    if (progress != AGENT_DB_READY) {
        return progress;
    }
    rows = db->partial;
    db->partial = NULL;
    if (rows == NULL) {
        fail_lost(db, err, pool);
        return AGENT_DB_FAILED;
    }
    *result = keep_result(rows, pool);
    if (PQresultStatus(rows) == PGRES_TUPLES_OK
        || PQresultStatus(rows) == PGRES_COMMAND_OK) {
        return AGENT_DB_READY;
    }
    fail_result(db, rows, err, pool);
    return AGENT_DB_FAILED;
}

/* Receives with a deadline; the statement must have been sent. */
static apr_status_t await_result(agent_db_result_t **result, agent_db_t *db,
                                 agent_error_t **err, apr_pool_t *pool)
{
    apr_time_t deadline = apr_time_now() + db->limits.query_timeout + GRACE;

    for (;;) {
        agent_db_progress_t progress = agent_db_receive(result, db, err, pool);

        if (progress == AGENT_DB_READY) {
            return APR_SUCCESS;
        }
        if (progress == AGENT_DB_FAILED) {
            return APR_EGENERAL;
        }
        if (!wait_socket(db, progress, deadline)) {
            return fail_late(db, err, pool);
        }
    }
}

/* ---- the waiting call ---- */

/* What a backend must know and answer before we use it: its limits, and that
 * its schema is the one these statements were written for. */
static apr_status_t greet_backend(agent_db_t *db, agent_error_t **err,
                                  apr_pool_t *pool)
{
    static const char sql[] =
        "select agent.schema_version(), "
        "pg_catalog.set_config('statement_timeout', $1, false), "
        "pg_catalog.set_config('lock_timeout', '2000', false)";
    const char *params[1];
    agent_db_result_t *result = NULL;
    apr_status_t rv;
    const char *version;

    memset(db->prepared, 0, sizeof(db->prepared));
    PQsetnonblocking(db->conn, 1);
    params[0] = apr_psprintf(pool, "%" APR_TIME_T_FMT,
                             apr_time_as_msec(db->limits.query_timeout));
    rv = start_receiving(
        db, PQsendQueryParams(db->conn, sql, 1, NULL, params, NULL, NULL, 0),
        err, pool);
    if (rv == APR_SUCCESS) {
        rv = await_result(&result, db, err, pool);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    version = agent_db_value(result, 0, 0);
    if (version == NULL || atol(version) != AGENT_SCHEMA_VERSION) {
        return agent_error_set(
            err, AGENT_E_SCHEMA_VERSION, NULL,
            apr_psprintf(pool,
                         "schema agent has version %s, this module needs %d: "
                         "install the sql/ folder of this release",
                         version ? version : "none", AGENT_SCHEMA_VERSION),
            pool);
    }
    db->backend_pid = PQbackendPID(db->conn);
    return APR_SUCCESS;
}

static apr_status_t prepare(agent_db_t *db, agent_statement_t statement,
                            agent_error_t **err, apr_pool_t *pool)
{
    const statement_row_t *row = &statement_rows[statement];
    agent_db_result_t *result;
    apr_status_t rv;

    if (db->prepared[statement]) {
        return APR_SUCCESS;
    }
    rv = start_receiving(
        db, PQsendPrepare(db->conn, row->name, row->sql, row->params, NULL),
        err, pool);
    if (rv == APR_SUCCESS) {
        rv = await_result(&result, db, err, pool);
    }
    /* 42P05: somebody prepared it before us on this very backend. */
    if (rv != APR_SUCCESS && strcmp(db->sqlstate, "42P05") == 0) {
        rv = APR_SUCCESS;
    }
    db->prepared[statement] = rv == APR_SUCCESS;
    return rv;
}

static apr_status_t query_once(agent_db_result_t **result, agent_db_t *db,
                               agent_statement_t statement,
                               const char *const *params, agent_error_t **err,
                               apr_pool_t *pool)
{
    const statement_row_t *row = &statement_rows[statement];
    apr_status_t rv = APR_SUCCESS;

    if (is_deaf(db)) {
        rv = reset_connection(db, err, pool);
    }
    if (rv == APR_SUCCESS && db->backend_pid != PQbackendPID(db->conn)) {
        rv = greet_backend(db, err, pool);
    }
    if (rv == APR_SUCCESS) {
        rv = prepare(db, statement, err, pool);
    }
    if (rv == APR_SUCCESS) {
        rv = start_receiving(db,
                             PQsendQueryPrepared(db->conn, row->name,
                                                 row->params, params, NULL,
                                                 NULL, 0),
                             err, pool);
    }
    return rv == APR_SUCCESS ? await_result(result, db, err, pool) : rv;
}

/* Whether the statement that just failed may be sent once more. */
static bool may_repeat(agent_db_t *db, agent_statement_t statement,
                       agent_error_id_t error)
{
    const char *state = db->sqlstate;

    if (strcmp(state, "26000") == 0) {
        /* The prepared statement is gone, nothing was executed. */
        db->backend_pid = 0;
        return true;
    }
    if (strcmp(state, "57P01") == 0) {
        /* Terminated before it could commit: a commit is not interrupted. */
        db->broken = true;
        return true;
    }
    if (strcmp(state, "40001") == 0 || strcmp(state, "40P01") == 0
        || strcmp(state, "55P03") == 0) {
        unsigned char jitter;

        apr_generate_random_bytes(&jitter, 1);
        apr_sleep(apr_time_from_msec(5 + jitter / 8));
        return true;
    }
    /* Lost on the way: it may have been executed. */
    return state[0] == '\0' && error == AGENT_E_UNAVAILABLE
        && statement_rows[statement].repeatable;
}

apr_status_t agent_db_query(agent_db_result_t **result, agent_db_t *db,
                            agent_statement_t statement,
                            const char *const *params, agent_error_t **err,
                            apr_pool_t *pool)
{
    apr_status_t rv = APR_EGENERAL;

    for (int tries = 0; tries < MAX_TRIES; tries++) {
        rv = query_once(result, db, statement, params, err, pool);
        if (rv == APR_SUCCESS || !may_repeat(db, statement, (*err)->id)) {
            return rv;
        }
    }
    return rv;
}

apr_status_t agent_db_read_code(const char **body,
                                const agent_db_result_t *result,
                                agent_error_t **err, apr_pool_t *pool)
{
    const char *code;

    if (agent_db_rows(result) != 1) {
        return agent_error_set(err, AGENT_E_INTERNAL, NULL,
                               "a function answered no row", pool);
    }
    code = agent_db_value(result, 0, 0);
    *body = agent_db_value(result, 0, 1);
    if (code != NULL && strcmp(code, "ok") == 0) {
        return APR_SUCCESS;
    }
    if (code != NULL && strcmp(code, "waiting") == 0) {
        return APR_EAGAIN;
    }
    return agent_error_set(err, agent_error_from_code(code ? code : ""), *body,
                           code, pool);
}

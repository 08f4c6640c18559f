/* SPDX-License-Identifier: Apache-2.0 */
/* Sending a statement and receiving its result, without blocking; see query.h.
 */
#include <string.h>

#include <apr_strings.h>

#include "column.h"
#include "connection.h"

struct agent_db_result_t {
    PGresult *rows;
};

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

apr_int64_t agent_db_integer(const agent_db_result_t *result, int row,
                             int column, apr_int64_t absent)
{
    const char *text = agent_db_value(result, row, column);

    return text != NULL ? apr_strtoi64(text, NULL, 10) : absent;
}

apr_size_t agent_db_result_bytes(const agent_db_result_t *result)
{
    return PQresultMemorySize(result->rows);
}

/* "cached plan must not change result type": other errors have this SQLSTATE
 * too, and the message has the language of the server. */
static bool is_plan_stale(const PGresult *rows)
{
    const char *state = PQresultErrorField(rows, PG_DIAG_SQLSTATE);
    const char *function = PQresultErrorField(rows, PG_DIAG_SOURCE_FUNCTION);

    return strcmp(state, "0A000") == 0 && function != NULL
        && strcmp(function, "RevalidateCachedQuery") == 0;
}

static apr_status_t fail_result(agent_db_t *db, const PGresult *rows,
                                agent_error_t **err, apr_pool_t *pool)
{
    const char *state = PQresultErrorField(rows, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(rows, PG_DIAG_MESSAGE_PRIMARY);
    const char *severity = PQresultErrorField(rows,
                                              PG_DIAG_SEVERITY_NONLOCALIZED);

    if (state == NULL) {
        return agent_db_set_lost(db, err, pool);
    }
    apr_cpystrn(db->sqlstate, state, sizeof(db->sqlstate));
    apr_cpystrn(db->severity, severity != NULL ? severity : "",
                sizeof(db->severity));
    db->is_plan_stale = is_plan_stale(rows);
    return agent_error_set(
        err, agent_error_from_sqlstate(state), NULL,
        apr_pstrcat(pool, state, ": ", agent_db_message(message, pool), NULL),
        pool);
}

apr_status_t agent_db_mark_sent(agent_db_t *db, int sent, agent_error_t **err,
                                apr_pool_t *pool)
{
    db->sqlstate[0] = db->severity[0] = '\0';
    db->is_plan_stale = false;
    db->flushing = true;
    return sent ? APR_SUCCESS : agent_db_set_lost(db, err, pool);
}

bool agent_db_is_prepared(const agent_db_t *db,
                          const agent_statement_t *statement)
{
    for (int i = 0; i < db->prepared->nelts; i++) {
        if (APR_ARRAY_IDX(db->prepared, i, const agent_statement_t *)
            == statement) {
            return true;
        }
    }
    return false;
}

bool agent_db_is_stale(const agent_db_t *db)
{
    return strcmp(db->sqlstate, "42P05") == 0
        || (db->was_prepared
            && (strcmp(db->sqlstate, "26000") == 0 || db->is_plan_stale));
}

static int send_prepared(agent_db_t *db, const agent_statement_t *statement,
                         const agent_db_params_t *params)
{
    return PQsendQueryPrepared(db->conn, statement->name, statement->params,
                               params->values, params->lengths, params->formats,
                               0);
}

/* In pipeline mode: its preparation, if it has none, and the statement. */
static int queue_statement(agent_db_t *db, const agent_statement_t *statement,
                           const agent_db_params_t *params)
{
    if (!db->was_prepared) {
        db->preparing = statement;
        if (!PQsendPrepare(db->conn, statement->name, statement->sql,
                           statement->params, NULL)) {
            return 0;
        }
    }
    return send_prepared(db, statement, params);
}

static int send_unnamed(agent_db_t *db, const agent_statement_t *statement,
                        const agent_db_params_t *params)
{
    return PQsendQueryParams(db->conn, statement->sql, statement->params, NULL,
                             params->values, params->lengths, params->formats,
                             0);
}

apr_status_t agent_db_send_both(agent_db_t *db, const agent_statement_t *first,
                                const char *const *first_params,
                                const agent_statement_t *second,
                                const agent_db_params_t *params,
                                agent_error_t **err, apr_pool_t *pool)
{
    const agent_db_params_t texts = {.values = first_params};
    int sent;

    db->was_prepared = agent_db_is_prepared(db, second);
    db->has_first = true;
    sent = PQenterPipelineMode(db->conn) && send_unnamed(db, first, &texts)
        && queue_statement(db, second, params) && PQpipelineSync(db->conn);
    return agent_db_mark_sent(db, sent, err, pool);
}

apr_status_t agent_db_send_params(agent_db_t *db,
                                  const agent_statement_t *statement,
                                  const agent_db_params_t *params,
                                  agent_error_t **err, apr_pool_t *pool)
{
    int sent;

    db->was_prepared = statement->name != NULL
        && agent_db_is_prepared(db, statement);
    if (statement->name == NULL) {
        sent = send_unnamed(db, statement, params);
    }
    else if (db->was_prepared) {
        sent = send_prepared(db, statement, params);
    }
    else {
        sent = PQenterPipelineMode(db->conn)
            && queue_statement(db, statement, params)
            && PQpipelineSync(db->conn);
    }
    return agent_db_mark_sent(db, sent, err, pool);
}

apr_status_t agent_db_send(agent_db_t *db, const agent_statement_t *statement,
                           const char *const *params, agent_error_t **err,
                           apr_pool_t *pool)
{
    const agent_db_params_t texts = {.values = params};

    return agent_db_send_params(db, statement, &texts, err, pool);
}

/* Keeps an error that follows rows, and the first of two errors, since a
 * terminated backend sends its reason before the connection is lost. */
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

/* In a pipeline the results of the first of two statements and of the
 * preparation precede that of the statement. */
static void keep_result_of_send(agent_db_t *db, PGresult *next)
{
    const agent_statement_t *prepared = db->preparing;

    if (db->has_first) {
        db->has_first = false;
        if (PQresultStatus(next) == PGRES_TUPLES_OK) {
            PQclear(next);
            return;
        }
    }
    else if (prepared != NULL) {
        db->preparing = NULL;
        if (PQresultStatus(next) == PGRES_COMMAND_OK) {
            APR_ARRAY_PUSH(db->prepared, const agent_statement_t *) = prepared;
            PQclear(next);
            return;
        }
    }
    keep_first_error(db, next);
}

/* Reads available results; WANT_READ if more must follow. */
static agent_db_progress_t take_results(agent_db_t *db)
{
    while (!PQisBusy(db->conn)) {
        PGresult *next = PQgetResult(db->conn);

        if (next == NULL) {
            /* In a pipeline each statement's results end with one. */
            if (PQpipelineStatus(db->conn) == PQ_PIPELINE_OFF
                || !agent_db_alive(db)) {
                return AGENT_DB_READY;
            }
        }
        else if (PQresultStatus(next) == PGRES_PIPELINE_SYNC) {
            PQclear(next);
            if (!PQexitPipelineMode(db->conn)) {
                /* The result is complete; the next statement would hang. */
                db->broken = true;
            }
            return AGENT_DB_READY;
        }
        else {
            keep_result_of_send(db, next);
        }
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
            /* The server may block until its output is read. */
            PQconsumeInput(db->conn);
            return AGENT_DB_WANT_WRITE;
        }
        /* A failed flush is reported with the result. */
        db->flushing = false;
    }
    /* A failed read is reported with the result. */
    PQconsumeInput(db->conn);
    progress = take_results(db);
    if (progress != AGENT_DB_READY) {
        return progress;
    }
    rows = db->partial;
    db->partial = NULL;
    if (rows == NULL) {
        agent_db_set_lost(db, err, pool);
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

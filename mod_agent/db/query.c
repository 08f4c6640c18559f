/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements on one PostgreSQL connection; see query.h. Uses libpq's
 * non-blocking functions only: agent_db_query() polls between the steps, so a
 * hanging server never exceeds the time limits.
 */
#include "query.h"

#include <string.h>

#include <apr_general.h>
#include <apr_strings.h>

#include "../core/limit.h"
#include "connection.h"
#include "limits.h"

/* The client waits longer than the server's statement_timeout, so that the
 * server's error, after which the statement may be repeated, comes first. */
#define GRACE apr_time_from_msec(500)
/* Attempts of a statement after deadlocks and serialization failures. */
#define MAX_TRIES 3

static apr_status_t fail_late(agent_db_t *db, agent_error_t **err,
                              apr_pool_t *pool)
{
    db->sqlstate[0] = '\0';
    db->broken = true;
    return agent_error_set(err, AGENT_E_TIMED_OUT, NULL,
                           "no answer from PostgreSQL in time", pool);
}

static apr_status_t await_result(agent_db_result_t **result, agent_db_t *db,
                                 agent_error_t **err, apr_pool_t *pool)
{
    apr_time_t deadline = apr_time_now() + db->settings.query_timeout + GRACE;

    for (;;) {
        agent_db_progress_t progress = agent_db_receive(result, db, err, pool);

        if (progress == AGENT_DB_READY) {
            return APR_SUCCESS;
        }
        if (progress == AGENT_DB_FAILED) {
            return APR_EGENERAL;
        }
        if (!agent_db_wait(db, progress, deadline)) {
            return fail_late(db, err, pool);
        }
    }
}

/* ---- the blocking call ---- */

/* Whether the schema has the version of these statements, and the database the
 * region of this server. */
static apr_status_t check_backend(const agent_db_t *db,
                                  const agent_db_result_t *result,
                                  agent_error_t **err, apr_pool_t *pool)
{
    const char *wanted = db->settings.region;
    const char *version = result != NULL ? agent_db_value(result, 0, 0) : NULL;
    const char *region = result != NULL ? agent_db_value(result, 0, 1) : NULL;

    if (version == NULL || apr_atoi64(version) != AGENT_SCHEMA_VERSION) {
        return agent_error_set(
            err, AGENT_E_SCHEMA_VERSION, NULL,
            apr_psprintf(pool,
                         "schema agent has version %s, this module needs %d: "
                         "install the sql/ folder of this release",
                         version ? version : "none", AGENT_SCHEMA_VERSION),
            pool);
    }
    if (wanted != NULL && (region == NULL || strcmp(region, wanted) != 0)) {
        return agent_error_set(
            err, AGENT_E_REGION_MISMATCH, NULL,
            apr_psprintf(pool,
                         "the database belongs to region %s, this server to "
                         "region %s (AgentRegion)",
                         region ? region : "none", wanted),
            pool);
    }
    return APR_SUCCESS;
}

/* A statement that is executed once. */
static apr_status_t query_plain(agent_db_result_t **result, agent_db_t *db,
                                const char *sql, int count,
                                const char *const *params, agent_error_t **err,
                                apr_pool_t *pool)
{
    apr_status_t rv = agent_db_mark_sent(
        db,
        PQsendQueryParams(db->conn, sql, count, NULL, params, NULL, NULL, 0),
        err, pool);

    return rv == APR_SUCCESS ? await_result(result, db, err, pool) : rv;
}

static apr_status_t store_limits(agent_db_t *db, agent_error_t **err,
                                 apr_pool_t *pool)
{
    const agent_db_settings_t *settings = &db->settings;
    const char *params[AGENT_DB_LIMITS_PARAMS];
    agent_db_result_t *result = NULL;
    apr_status_t rv;

    agent_db_limits_fill(params, &settings->limits, pool);
    rv = query_plain(&result, db, agent_db_set_limits.sql,
                     AGENT_DB_LIMITS_PARAMS, params, err, pool);
    if (rv == APR_SUCCESS) {
        agent_db_limits_report(result, &settings->log, pool);
    }
    /* Requests continue with the limits that are stored. */
    else if (PQtransactionStatus(db->conn) == PQTRANS_IDLE) {
        settings->log.write(
            settings->log.baton, AGENT_LOG_WARNING, "AGT0454", 0,
            apr_psprintf(pool, "AgentLimit: not stored: %s", (*err)->cause));
        return APR_SUCCESS;
    }
    return rv;
}

/* Sets the session's limits on a new backend, and checks it. */
static apr_status_t set_up_backend(agent_db_t *db, agent_error_t **err,
                                   apr_pool_t *pool)
{
    static const char sql[] =
        "select agent.schema_version(), "
        "agent.database_region(), " AGENT_DB_SESSION_SQL
        "pg_catalog.set_config('statement_timeout', $1, false), "
        "pg_catalog.set_config('lock_timeout', '2000', false)";
    const char *params[1];
    agent_db_result_t *result = NULL;
    apr_status_t rv;

    apr_array_clear(db->prepared);
    PQsetnonblocking(db->conn, 1);
    params[0] = apr_psprintf(pool, "%" APR_TIME_T_FMT,
                             apr_time_as_msec(db->settings.query_timeout));
    rv = query_plain(&result, db, sql, 1, params, err, pool);
    if (rv == APR_SUCCESS) {
        rv = check_backend(db, result, err, pool);
    }
    if (rv == APR_SUCCESS && db->settings.limits.text != NULL) {
        rv = store_limits(db, err, pool);
    }
    if (rv == APR_SUCCESS) {
        db->backend_pid = PQbackendPID(db->conn);
    }
    return rv;
}

static apr_status_t prepare(agent_db_t *db, const agent_statement_t *statement,
                            agent_error_t **err, apr_pool_t *pool)
{
    agent_db_result_t *result;
    apr_status_t rv;

    if (agent_db_is_prepared(db, statement)) {
        return APR_SUCCESS;
    }
    rv = agent_db_mark_sent(db,
                            PQsendPrepare(db->conn, statement->name,
                                          statement->sql, statement->params,
                                          NULL),
                            err, pool);
    if (rv == APR_SUCCESS) {
        rv = await_result(&result, db, err, pool);
    }
    /* 42P05: it was already prepared on this backend. */
    if (rv != APR_SUCCESS && strcmp(db->sqlstate, "42P05") == 0) {
        rv = APR_SUCCESS;
    }
    if (rv == APR_SUCCESS) {
        APR_ARRAY_PUSH(db->prepared, const agent_statement_t *) = statement;
    }
    return rv;
}

static apr_status_t query_once(agent_db_result_t **result, agent_db_t *db,
                               const agent_statement_t *statement,
                               const char *const *params, agent_error_t **err,
                               apr_pool_t *pool)
{
    apr_status_t rv = APR_SUCCESS;

    if (agent_db_needs_reset(db)) {
        rv = agent_db_reset(db, err, pool);
    }
    if (rv == APR_SUCCESS && db->backend_pid != PQbackendPID(db->conn)) {
        rv = set_up_backend(db, err, pool);
    }
    if (rv == APR_SUCCESS) {
        rv = prepare(db, statement, err, pool);
    }
    if (rv == APR_SUCCESS) {
        rv = agent_db_mark_sent(db,
                                PQsendQueryPrepared(db->conn, statement->name,
                                                    statement->params, params,
                                                    NULL, NULL, 0),
                                err, pool);
    }
    return rv == APR_SUCCESS ? await_result(result, db, err, pool) : rv;
}

static void record_size(agent_db_t *db, apr_size_t bytes)
{
    if (bytes > db->largest_text) {
        db->largest_text = bytes;
    }
}

static void record_params(agent_db_t *db, const agent_statement_t *statement,
                          const char *const *params)
{
    apr_size_t bytes = 0;

    for (int i = 0; i < statement->params; i++) {
        bytes += params[i] != NULL ? strlen(params[i]) : 0;
    }
    record_size(db, bytes);
}

/* Whether a failed statement may be sent again. *was_stale: it has been sent
 * again because its plan was stale, which is done once. */
static bool may_repeat(agent_db_t *db, const agent_statement_t *statement,
                       agent_error_id_t error, bool *was_stale)
{
    const char *state = db->sqlstate;

    if (strcmp(state, "26000") == 0) {
        /* The prepared statement does not exist; nothing was executed. */
        db->backend_pid = 0;
        return true;
    }
    if (strcmp(state, "57P01") == 0 || strcmp(state, "57P05") == 0) {
        /* Terminated before it could commit, since a commit is not interrupted;
         * or before it was read, since the session was idle for too long. */
        db->broken = true;
        return true;
    }
    if (db->is_plan_stale) {
        /* Not executed. A new backend prepares it with its new types; through
         * a pooler it may be an old one again. */
        bool is_first = !*was_stale;

        *was_stale = true;
        db->broken = true;
        return is_first;
    }
    if (strcmp(state, "40001") == 0 || strcmp(state, "40P01") == 0
        || strcmp(state, "55P03") == 0) {
        unsigned char jitter;

        apr_generate_random_bytes(&jitter, 1);
        apr_sleep(apr_time_from_msec(5 + jitter / 8));
        return true;
    }
    /* The connection was lost: the statement may have been executed. */
    return state[0] == '\0' && error == AGENT_E_UNAVAILABLE
        && statement->is_repeatable;
}

apr_status_t agent_db_query(agent_db_result_t **result, agent_db_t *db,
                            const agent_statement_t *statement,
                            const char *const *params, agent_error_t **err,
                            apr_pool_t *pool)
{
    apr_status_t rv = APR_EGENERAL;
    bool was_stale = false;

    record_params(db, statement, params);
    for (int tries = 0; tries < MAX_TRIES; tries++) {
        rv = query_once(result, db, statement, params, err, pool);
        if (rv == APR_SUCCESS) {
            record_size(db, agent_db_result_bytes(*result));
        }
        if (rv == APR_SUCCESS
            || !may_repeat(db, statement, (*err)->id, &was_stale)) {
            return rv;
        }
    }
    return rv;
}

/* Only a code that is unknown is a cause: the log has the code of others. */
static apr_status_t fail_code(const char *code, const char *detail,
                              agent_error_t **err, apr_pool_t *pool)
{
    agent_error_id_t id = agent_error_from_code(code ? code : "");

    if (id == AGENT_E_LIMIT) {
        return agent_limit_refuse_text(err, detail, pool);
    }
    return agent_error_set(err, id, detail,
                           id != AGENT_E_INTERNAL ? NULL
                               : code != NULL     ? code
                                              : "a function returned no code",
                           pool);
}

apr_status_t agent_db_read_code(const char **body,
                                const agent_db_result_t *result,
                                agent_error_t **err, apr_pool_t *pool)
{
    const char *code;

    if (agent_db_rows(result) != 1) {
        return agent_error_set(err, AGENT_E_INTERNAL, NULL,
                               "a function returned no row", pool);
    }
    code = agent_db_value(result, 0, 0);
    *body = agent_db_value(result, 0, 1);
    if (code != NULL && strcmp(code, "ok") == 0) {
        return APR_SUCCESS;
    }
    if (code != NULL && strcmp(code, "waiting") == 0) {
        return APR_EAGAIN;
    }
    return fail_code(code, *body, err, pool);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements over one PostgreSQL connection, through libpq.
 *
 * Two ways to use a connection: the handlers call and wait, bounded in time
 * (agent_db_query); the supervisor sends and receives in its poll loop. This is
 * the only file that executes SQL. One connection belongs to one thread at a
 * time.
 */
#ifndef AGENT_DB_QUERY_H
#define AGENT_DB_QUERY_H

#include <stdbool.h>

#include <apr_time.h>

#include "../core/error.h"
#include "statement.h"

/* What agent.schema_version() must answer. */
#define AGENT_SCHEMA_VERSION 5

typedef struct agent_db_t agent_db_t;
typedef struct agent_db_result_t agent_db_result_t;

/* How long a connection and a statement may take. */
typedef struct agent_db_limits_t {
    apr_interval_time_t connect_timeout;
    apr_interval_time_t query_timeout;
} agent_db_limits_t;

/* What a non-blocking step waits for. */
typedef enum agent_db_progress_t {
    AGENT_DB_READY,
    AGENT_DB_WANT_READ,
    AGENT_DB_WANT_WRITE,
    AGENT_DB_FAILED
} agent_db_progress_t;

/*
 * Wraps a connection that somebody else owns: native is the PGconn of mod_dbd,
 * pool lives as long as that connection.
 */
agent_db_t *agent_db_wrap(void *native, const agent_db_limits_t *limits,
                          apr_pool_t *pool);

/*
 * Executes a statement and waits, at most connect_timeout + query_timeout. A
 * dead connection is noticed before anything is sent and made again; prepared
 * statements lost with it are prepared again. A statement is repeated only
 * when it cannot have taken effect, or is repeatable.
 * params: as many as the statement has, NULL = SQL null. The result lives as
 * long as pool.
 */
apr_status_t agent_db_query(agent_db_result_t **result, agent_db_t *db,
                            const agent_statement_t *statement,
                            const char *const *params, agent_error_t **err,
                            apr_pool_t *pool);

/*
 * Reads the one (code, body) row of a function's result. APR_SUCCESS: code was
 * `ok`, *body its text or NULL; APR_EAGAIN: code was `waiting`. Any other code
 * becomes the error of errors.def. *body is borrowed from the result.
 */
apr_status_t agent_db_read_code(const char **body,
                                const agent_db_result_t *result,
                                agent_error_t **err, apr_pool_t *pool);

/* Rows of a result. */
int agent_db_rows(const agent_db_result_t *result);

/* A value as a number; absent for SQL null. */
apr_int64_t agent_db_integer(const agent_db_result_t *result, int row,
                             int column, apr_int64_t absent);

/* A value as text, borrowed from the result; NULL for SQL null. */
const char *agent_db_value(const agent_db_result_t *result, int row,
                           int column);

/*
 * Starts a connection of our own that lives as long as pool; never blocks
 * (but for a name look-up). conninfo: libpq's. application_name is shown in
 * pg_stat_activity.
 */
apr_status_t agent_db_connect(agent_db_t **out, const char *conninfo,
                              const char *application_name, agent_error_t **err,
                              apr_pool_t *pool);

/* One step of connecting; call again when the socket is ready for it. */
agent_db_progress_t agent_db_connect_step(agent_db_t *db, agent_error_t **err,
                                          apr_pool_t *pool);

/*
 * Of the time a connection may take, what each of its hosts may have; after
 * that the next one is to be tried, unless this one has accepted. The next step
 * need not wait for the socket.
 */
apr_interval_time_t agent_db_connect_timeout_per_host(
    const agent_db_t *db, apr_interval_time_t whole);
void agent_db_next_host(agent_db_t *db);

/* The socket to poll; -1 when the connection is gone. Ask before each poll:
 * it changes while connecting. */
int agent_db_socket(const agent_db_t *db);

/* Queues a statement; the connection must be ready and idle. The parameters
 * are copied before it returns. */
apr_status_t agent_db_send(agent_db_t *db, const agent_statement_t *statement,
                           const char *const *params, agent_error_t **err,
                           apr_pool_t *pool);

/*
 * One step of sending and receiving. AGENT_DB_READY: *result holds all rows
 * and the connection is idle. AGENT_DB_FAILED: err says why; the connection
 * goes on being usable when agent_db_alive() says so.
 */
agent_db_progress_t agent_db_receive(agent_db_result_t **result, agent_db_t *db,
                                     agent_error_t **err, apr_pool_t *pool);

/* False once the connection is lost and must be closed. */
bool agent_db_alive(const agent_db_t *db);

/* True when a lost connection could not be made again at the last attempt. */
bool agent_db_unreachable(const agent_db_t *db);

/* The SQLSTATE of the last error on this connection; "" when none. */
const char *agent_db_sqlstate(const agent_db_t *db);

/* Closes a connection of our own before its pool ends. */
void agent_db_close(agent_db_t *db);

/* Frees a PGresult that the listener received: this is the only place that
 * does. */
void agent_db_discard(void *rows);

/* One PostgreSQL array literal of texts, in pool: {"a","b"}. count may be 0. */
const char *agent_db_array(const char *const *texts, apr_size_t count,
                           apr_pool_t *pool);

/* The same of a NULL-terminated list; NULL, which is SQL null, for NULL. */
const char *agent_db_list(const char *const *texts, apr_pool_t *pool);

#endif

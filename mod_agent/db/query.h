/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statements on one PostgreSQL connection, with libpq. Handlers call
 * agent_db_query(), which blocks with a time limit; the supervisor sends and
 * receives in its poll loop. One thread at a time uses a connection.
 */
#ifndef AGENT_DB_QUERY_H
#define AGENT_DB_QUERY_H

#include <stdbool.h>

#include <apr_time.h>

#include "../core/error.h"
#include "settings.h"
#include "statement.h"

/* The required result of agent.schema_version(). */
#define AGENT_SCHEMA_VERSION 5

typedef struct agent_db_t agent_db_t;
typedef struct agent_db_result_t agent_db_result_t;

/* The state after a non-blocking step. */
typedef enum agent_db_progress_t {
    AGENT_DB_READY,
    AGENT_DB_WANT_READ,
    AGENT_DB_WANT_WRITE,
    AGENT_DB_FAILED
} agent_db_progress_t;

/* Wraps a connection of mod_dbd, in pool: native is its PGconn, which must live
 * as long as pool and is not closed. */
agent_db_t *agent_db_wrap(void *native, const agent_db_settings_t *settings,
                          apr_pool_t *pool);

/*
 * Executes a statement, within connect_timeout + query_timeout. A lost
 * connection is detected before the statement is sent and reset; its prepared
 * statements are prepared again. A statement is repeated only if it cannot have
 * taken effect or is marked repeatable. params: as many as the statement has,
 * NULL = SQL null. The result is in pool.
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

/* Returns the number of rows. */
int agent_db_rows(const agent_db_result_t *result);

/* Returns a value as a number; `absent` for SQL null. */
apr_int64_t agent_db_integer(const agent_db_result_t *result, int row,
                             int column, apr_int64_t absent);

/* Returns a value as text, borrowed from the result; NULL for SQL null. row and
 * column must be in range, here and above. */
const char *agent_db_value(const agent_db_result_t *result, int row,
                           int column);

/* Starts a connection, in pool, without blocking except for DNS. conninfo: of
 * libpq. beside: an open connection of the same conninfo, to whose address the
 * new one connects without DNS; NULL: none. */
apr_status_t agent_db_connect(agent_db_t **out, const char *conninfo,
                              const char *application_name,
                              const agent_db_t *beside, agent_error_t **err,
                              apr_pool_t *pool);

/* Connects, and returns when the connection can be used by agent_db_query().
 * Errors: UNAVAILABLE. */
apr_status_t agent_db_open(agent_db_t **out, const char *conninfo,
                           const char *application_name,
                           const agent_db_settings_t *settings,
                           agent_error_t **err, apr_pool_t *pool);

/* Whether the role is a superuser, without executing a statement. */
bool agent_db_is_superuser(const agent_db_t *db);

/* Does one step of connecting; call again when the socket is ready for it. */
agent_db_progress_t agent_db_connect_step(agent_db_t *db, agent_error_t **err,
                                          apr_pool_t *pool);

/*
 * Returns the part of the connect timeout `whole` that each host of the
 * connection string gets. In non-blocking mode libpq tries the hosts in turn
 * without a time limit: one that is powered off would use all of the time.
 */
apr_interval_time_t agent_db_host_timeout(const agent_db_t *db,
                                          apr_interval_time_t whole);

/* Makes libpq try the next host, unless the current one has accepted. The next
 * step of connecting must not wait for the socket. */
void agent_db_skip_host(const agent_db_t *db);

/* Returns the socket to poll; -1 when the connection is lost. It may change
 * while connecting. */
int agent_db_socket(const agent_db_t *db);

/* Queues a statement, and before its first execution on the connection its
 * preparation; the connection must be ready and idle. The parameters are copied
 * before it returns. */
apr_status_t agent_db_send(agent_db_t *db, const agent_statement_t *statement,
                           const char *const *params, agent_error_t **err,
                           apr_pool_t *pool);

/*
 * Does one step of sending and receiving. AGENT_DB_READY: *result has all rows.
 * AGENT_DB_FAILED: err says why. After both the connection is idle if
 * agent_db_alive(), else it must be closed.
 */
agent_db_progress_t agent_db_receive(agent_db_result_t **result, agent_db_t *db,
                                     agent_error_t **err, apr_pool_t *pool);

/* Returns false once the connection is lost and must be closed. */
bool agent_db_alive(const agent_db_t *db);

/* Returns true when the last attempt to reset the connection failed. */
bool agent_db_unreachable(const agent_db_t *db);

/* Returns the SQLSTATE of the last error on this connection, borrowed from it;
 * "" when there was none. */
const char *agent_db_sqlstate(const agent_db_t *db);

/* Whether the last statement of agent_db_send() failed, unexecuted, because the
 * session has lost its preparation, or has one that we did not make, or because
 * its function returns other types since. A new connection prepares it again.
 */
bool agent_db_is_stale(const agent_db_t *db);

/* Closes a connection of agent_db_connect() before its pool ends. */
void agent_db_close(agent_db_t *db);

/* Returns a PostgreSQL array literal of `count` texts, in pool: {"a","b"}. */
const char *agent_db_array(const char *const *texts, apr_size_t count,
                           apr_pool_t *pool);

/* Returns the literal of a NULL-terminated array of texts; of NULL returns
 * NULL, which is SQL null. */
const char *agent_db_text_array(const char *const *texts, apr_pool_t *pool);

#endif

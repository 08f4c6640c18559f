/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of mod_dbd with a bounded wait. mod_dbd itself waits without
 * a limit when its pool is empty, and connects for every request while the
 * database is down. One pool per child, shared by its threads.
 */
#ifndef AGENT_DB_POOL_H
#define AGENT_DB_POOL_H

#include "query.h"

typedef struct agent_db_pool_t agent_db_pool_t;

/*
 * Creates the pool in child_init. server: the main server_rec. params: the
 * connection string of mod_dbd, to replace connections whose buffers have
 * grown; NULL = connections are not replaced. size: connections in use at the
 * same time, at most mod_dbd's DBDMax. wait: time limit of a request for a
 * connection.
 */
apr_status_t agent_db_pool_create(agent_db_pool_t **out, void *server,
                                  const char *params, int size,
                                  apr_interval_time_t wait,
                                  const agent_db_settings_t *settings,
                                  apr_pool_t *pool);

/*
 * A part of the pool for queries that may be slow: at most `size` of the pool's
 * connections at the same time, so that the others stay free for other
 * requests. Used like the pool; wait applies to the part, and the pool's own
 * wait after it.
 */
apr_status_t agent_db_pool_create_part(agent_db_pool_t **out,
                                       agent_db_pool_t *whole, int size,
                                       apr_interval_time_t wait,
                                       apr_pool_t *pool);

/*
 * agent_db_query() on a connection of the pool, which is returned; the result
 * is in pool. connections may be NULL, on a server without a database. Further
 * errors: POOL_EXHAUSTED after the wait, UNAVAILABLE when no connection can be
 * opened.
 */
apr_status_t agent_db_pool_query(agent_db_result_t **result,
                                 agent_db_pool_t *connections,
                                 const agent_statement_t *statement,
                                 const char *const *params, agent_error_t **err,
                                 apr_pool_t *pool);

/*
 * Calls a function that returns (code, body), see agent_db_read_code():
 * APR_SUCCESS for `ok`, APR_EAGAIN for `waiting`, else the error.
 */
apr_status_t agent_db_pool_call(const char **body, agent_db_pool_t *connections,
                                const agent_statement_t *statement,
                                const char *const *params, agent_error_t **err,
                                apr_pool_t *pool);

/*
 * Calls a function that returns (code, body, extra). *extra: the text of the
 * third column, or NULL, such as the ids of other threads and runs that the
 * function has changed. extra NULL: it is not needed.
 */
apr_status_t agent_db_pool_call_extra(const char **body, const char **extra,
                                      agent_db_pool_t *connections,
                                      const agent_statement_t *statement,
                                      const char *const *params,
                                      agent_error_t **err, apr_pool_t *pool);

#endif

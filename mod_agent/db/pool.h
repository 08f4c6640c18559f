/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mod_dbd's connections behind a bounded wait: mod_dbd itself waits for ever
 * when its pool is empty, and connects once for every request while the
 * database is down. One pool per child, used by all its threads.
 */
#ifndef AGENT_DB_POOL_H
#define AGENT_DB_POOL_H

#include "query.h"

typedef struct agent_db_pool_t agent_db_pool_t;

/*
 * Makes the pool in child_init. server: the main server_rec, as mod_dbd wants
 * it. params: mod_dbd's connection string, for connections that are made anew
 * after they have carried large texts; NULL = they are not. size: connections
 * in use at once, at most mod_dbd's DBDMax. wait: how long a request may wait
 * for one of them.
 */
apr_status_t agent_db_pool_create(agent_db_pool_t **out, void *server,
                                  const char *params, int size,
                                  apr_interval_time_t wait,
                                  const agent_db_limits_t *limits,
                                  apr_pool_t *pool);

/*
 * agent_db_query() on a connection of the pool, given back before this
 * returns; the result stays in pool. Errors besides its own: POOL_EXHAUSTED
 * after the wait, UNAVAILABLE when no connection can be made.
 */
apr_status_t agent_db_pool_query(agent_db_result_t **result,
                                 agent_db_pool_t *connections,
                                 const agent_statement_t *statement,
                                 const char *const *params, agent_error_t **err,
                                 apr_pool_t *pool);

/*
 * The same for a function that answers (code, body), as agent_db_read_code()
 * reads it: APR_SUCCESS for `ok`, APR_EAGAIN for `waiting`, else the error.
 */
apr_status_t agent_db_pool_call(const char **body, agent_db_pool_t *connections,
                                const agent_statement_t *statement,
                                const char *const *params, agent_error_t **err,
                                apr_pool_t *pool);

/*
 * The same for a function whose third column is a text beside the body: *extra
 * is that text, or NULL. Writes name there what changed besides what they
 * answer: ids of threads and runs, separated by spaces.
 */
apr_status_t agent_db_pool_call_extra(const char **body, const char **extra,
                                      agent_db_pool_t *connections,
                                      const agent_statement_t *statement,
                                      const char *const *params,
                                      agent_error_t **err, apr_pool_t *pool);

#endif

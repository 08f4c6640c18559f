/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and their state: one SQL function each.
 *
 * *body receives the response as PostgreSQL built it, in pool. Ids are lower
 * case UUIDs. Errors are those of the SQL function and of agent_pool_call().
 */
#ifndef AGENT_MODEL_THREAD_H
#define AGENT_MODEL_THREAD_H

#include "../db/pool.h"

/* request: the body as sent. if_exists: raise or do_nothing. */
apr_status_t agent_thread_create(const char **body, agent_pool_t *db,
                                 const char *account_id, const char *thread_id,
                                 const char *if_exists, const char *request,
                                 agent_error_t **err, apr_pool_t *pool);

apr_status_t agent_thread_get(const char **body, agent_pool_t *db,
                              const char *account_id, const char *thread_id,
                              agent_error_t **err, apr_pool_t *pool);

apr_status_t agent_thread_delete(agent_pool_t *db, const char *account_id,
                                 const char *thread_id, agent_error_t **err,
                                 apr_pool_t *pool);

/* checkpoint_id NULL: the newest state. */
apr_status_t agent_thread_state(const char **body, agent_pool_t *db,
                                const char *account_id, const char *thread_id,
                                const char *checkpoint_id, agent_error_t **err,
                                apr_pool_t *pool);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and their state; see thread.h. */
#include "thread.h"

apr_status_t agent_thread_create(const char **body, agent_pool_t *db,
                                 const char *account_id, const char *thread_id,
                                 const char *if_exists, const char *request,
                                 agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {account_id, thread_id, if_exists, request};

    return agent_pool_call(body, db, AGENT_SQL_CREATE_THREAD, params, err,
                           pool);
}

apr_status_t agent_thread_get(const char **body, agent_pool_t *db,
                              const char *account_id, const char *thread_id,
                              agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {account_id, thread_id};

    return agent_pool_call(body, db, AGENT_SQL_GET_THREAD, params, err, pool);
}

apr_status_t agent_thread_delete(agent_pool_t *db, const char *account_id,
                                 const char *thread_id, agent_error_t **err,
                                 apr_pool_t *pool)
{
    const char *params[] = {account_id, thread_id};
    const char *body;

    return agent_pool_call(&body, db, AGENT_SQL_DELETE_THREAD, params, err,
                           pool);
}

apr_status_t agent_thread_state(const char **body, agent_pool_t *db,
                                const char *account_id, const char *thread_id,
                                const char *checkpoint_id, agent_error_t **err,
                                apr_pool_t *pool)
{
    const char *params[] = {account_id, thread_id, checkpoint_id};

    return agent_pool_call(body, db, AGENT_SQL_GET_STATE, params, err, pool);
}

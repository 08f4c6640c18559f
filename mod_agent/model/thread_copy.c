/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of threads; see thread_copy.h. */
#include "thread_copy.h"

static const agent_statement_t copy_thread = {
    .name = "agent_copy_thread",
    .params = 5,
    .sql = "select code, body from agent.copy_thread($1, $2, $3, $4, $5)"};

apr_status_t agent_thread_copy_piece(bool *more, agent_db_pool_t *db,
                                     const agent_run_ref_t *ref,
                                     const agent_thread_copy_t *copy,
                                     agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, copy->thread_id,
                            *more ? "true" : "false", copy->changed_id};
    const char *body;
    apr_status_t rv = agent_db_pool_call(&body, db, &copy_thread, params, err,
                                         pool);

    *more = rv == APR_SUCCESS && body != NULL;
    return rv;
}

static const agent_statement_t abandon_copy = {
    .name = "agent_abandon_copy",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body from agent.abandon_copy($1, $2)"};

apr_status_t agent_thread_copy_abandon(agent_db_pool_t *db,
                                       const agent_run_ref_t *copy,
                                       agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {copy->deployment_id, copy->thread_id};
    const char *body;

    return agent_db_pool_call(&body, db, &abandon_copy, params, err, pool);
}

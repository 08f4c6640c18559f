/* SPDX-License-Identifier: Apache-2.0 */
/* The check of the database; see system.h. */
#include "system.h"

static const agent_statement_t ping = {
    .name = "agent_ping", .is_repeatable = true, .sql = "select 'ok', null"};

apr_status_t agent_system_ping(agent_db_pool_t *db, agent_error_t **err,
                               apr_pool_t *pool)
{
    const char *body;

    return agent_db_pool_call(&body, db, &ping, NULL, err, pool);
}

apr_status_t agent_system_open(agent_db_t **db, const char *conninfo,
                               const agent_db_settings_t *settings,
                               agent_error_t **err, apr_pool_t *pool)
{
    agent_db_result_t *result;
    apr_status_t rv = agent_db_open(db, conninfo, "mod_agent start", settings,
                                    err, pool);

    return rv == APR_SUCCESS
        ? agent_db_query(&result, *db, &ping, NULL, err, pool)
        : rv;
}

static const agent_statement_t get_account = {
    .name = "agent_get_account",
    .params = 1,
    .is_repeatable = true,
    .sql = "select code, body from agent.get_account($1)"};

apr_status_t agent_system_find_account(agent_db_t *db, const char *account_id,
                                       agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {account_id};
    const char *body;
    agent_db_result_t *result;
    apr_status_t rv = agent_db_query(&result, db, &get_account, params, err,
                                     pool);

    return rv == APR_SUCCESS ? agent_db_read_code(&body, result, err, pool)
                             : rv;
}

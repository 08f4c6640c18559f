/* SPDX-License-Identifier: Apache-2.0 */
/* API keys; see stored_key.h. */
#include "stored_key.h"

#include <apr_strings.h>

static const agent_statement_t find_api_key = {
    .name = "agent_find_api_key",
    .params = 1,
    .is_repeatable = true,
    .sql = "select code, body from agent.find_api_key($1)"};

apr_status_t agent_stored_key_find(agent_key_record_t *out, agent_db_pool_t *db,
                                   const char *key_id, apr_time_t begun_at,
                                   agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {key_id};
    const char *body;
    apr_status_t rv = agent_db_pool_call(&body, db, &find_api_key, params, err,
                                         pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (body == NULL || !agent_key_record_read(out, body, begun_at, pool)) {
        return agent_error_set(err, AGENT_E_INTERNAL, NULL,
                               "agent.find_api_key() returned another object",
                               pool);
    }
    apr_cpystrn(out->identity.key_id, key_id, sizeof(out->identity.key_id));
    return APR_SUCCESS;
}

static const agent_statement_t use_api_key = {
    .name = "agent_use_api_key",
    .params = 1,
    .is_repeatable = true,
    .sql = "select code, body from agent.use_api_key($1)"};

apr_status_t agent_stored_key_use(agent_db_pool_t *db, const char *key_id,
                                  agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {key_id};
    const char *body;

    return agent_db_pool_call(&body, db, &use_api_key, params, err, pool);
}

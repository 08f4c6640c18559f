/* SPDX-License-Identifier: Apache-2.0 */
/* Assistants and their graphs; see assistant.h. */
#include "assistant.h"

/* In the order of agent_assistant_view_t. */
static const agent_statement_t get_assistant[] = {
    {.name = "agent_get_assistant",
     .params = 2,
     .is_repeatable = true,
     .sql = "select code, body from agent.get_assistant($1, $2)"},
    {.name = "agent_get_schemas",
     .params = 2,
     .is_repeatable = true,
     .sql = "select code, body from agent.get_schemas($1, $2)"},
    {.name = "agent_get_drawing",
     .params = 2,
     .is_repeatable = true,
     .sql = "select code, body from agent.get_drawing($1, $2)"}};

apr_status_t agent_assistant_get(const char **body, agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 const char *assistant_id,
                                 agent_assistant_view_t view,
                                 agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, assistant_id};

    return agent_db_pool_call(body, db, &get_assistant[view], params, err,
                              pool);
}

static const agent_statement_t search_assistants = {
    .name = "agent_search_assistants",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body, next from agent.search_assistants($1, $2)"};

apr_status_t agent_assistant_search(const char **body, const char **next,
                                    agent_db_pool_t *db,
                                    const agent_run_ref_t *ref,
                                    const char *request, agent_error_t **err,
                                    apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, request};

    return agent_db_pool_call_extra(body, next, db, &search_assistants, params,
                                    err, pool);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Assistants and their graphs; see assistant.h. */
#include "assistant.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/json.h"
#include "state.h"

static const agent_statement_t get_assistant = {
    .name = "agent_get_assistant",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body from agent.get_assistant($1, $2)"};

apr_status_t agent_assistant_get(const char **body, agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 const char *assistant_id, agent_error_t **err,
                                 apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, assistant_id};

    return agent_db_pool_call(body, db, &get_assistant, params, err, pool);
}

/* The arguments of the call `describe`. */
static const char *print_arguments(const agent_assistant_describe_t *describe,
                                   apr_pool_t *pool)
{
    if (strcmp(describe->what, "graph") == 0) {
        return apr_psprintf(
            pool, "{\"what\":\"graph\",\"xray\":%s}",
            describe->depth == AGENT_ASSISTANT_ANY_DEPTH ? "true"
                : describe->depth > 0 ? apr_itoa(pool, describe->depth)
                                      : "false");
    }
    if (strcmp(describe->what, "subgraphs") == 0) {
        return apr_psprintf(
            pool, "{\"what\":\"subgraphs\",\"namespace\":%s,\"recurse\":%s}",
            describe->namespace == NULL
                ? "null"
                : agent_json_quote(describe->namespace, pool),
            describe->recurse ? "true" : "false");
    }
    return "{\"what\":\"schemas\"}";
}

static const agent_statement_t describe_graph = {
    .name = "agent_describe_graph",
    .params = 5,
    .sql = "select code, body, changed from agent.describe_graph($1, $2, $3, "
           "$4, $5)"};

apr_status_t agent_assistant_describe(
    const char **body, const char **changed, agent_db_pool_t *db,
    const agent_run_ref_t *ref, const agent_assistant_describe_t *describe,
    agent_error_t **err, apr_pool_t *pool)
{
    const char *arguments = print_arguments(describe, pool);
    const char *params[] = {
        ref->deployment_id, describe->assistant_id, ref->run_id,
        agent_state_print_seconds(describe->timeout, pool), arguments};

    return agent_json_scan_request(arguments, strlen(arguments), err, pool)
            == APR_SUCCESS
        ? agent_db_pool_call_extra(body, changed, db, &describe_graph, params,
                                   err, pool)
        : APR_EGENERAL;
}

static const agent_statement_t search_assistants = {
    .name = "agent_search_assistants",
    .params = 5,
    .is_repeatable = true,
    .sql = "select code, body, next, total "
           "from agent.search_assistants($1, $2, $3, $4, $5)"};

apr_status_t agent_assistant_search(agent_page_t *page, agent_db_pool_t *db,
                                    const agent_assistant_query_t *query,
                                    agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {
        query->deployment_id, agent_db_text_array(query->known_graph_ids, pool),
        query->request, query->max_bytes, query->max_bytes == NULL ? "t" : "f"};

    return agent_page_query(page, db, &search_assistants, params, err, pool);
}

static const agent_statement_t count_assistants = {
    .name = "agent_count_assistants",
    .params = 3,
    .is_repeatable = true,
    .sql = "select code, body from agent.count_assistants($1, $2, $3)"};

apr_status_t agent_assistant_count(const char **body, agent_db_pool_t *db,
                                   const agent_assistant_query_t *query,
                                   agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {query->deployment_id,
                            agent_db_text_array(query->known_graph_ids, pool),
                            query->request};

    return agent_db_pool_call(body, db, &count_assistants, params, err, pool);
}

static const agent_statement_t create_assistant = {
    .name = "agent_create_assistant",
    .params = 4,
    .sql = "select code, body from agent.create_assistant($1, $2, $3, $4)"};
static const agent_statement_t update_assistant = {
    .name = "agent_update_assistant",
    .params = 4,
    .sql = "select code, body from agent.update_assistant($1, $2, $3, $4)"};

/* Both statements have the same parameters. */
static apr_status_t write_assistant(const char **body, agent_db_pool_t *db,
                                    const agent_statement_t *statement,
                                    const agent_assistant_write_t *write,
                                    agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {write->deployment_id, write->assistant_id,
                            agent_db_text_array(write->known_graph_ids, pool),
                            write->request};

    return agent_db_pool_call(body, db, statement, params, err, pool);
}

apr_status_t agent_assistant_create(const char **body, agent_db_pool_t *db,
                                    const agent_assistant_write_t *write,
                                    agent_error_t **err, apr_pool_t *pool)
{
    return write_assistant(body, db, &create_assistant, write, err, pool);
}

apr_status_t agent_assistant_update(const char **body, agent_db_pool_t *db,
                                    const agent_assistant_write_t *write,
                                    agent_error_t **err, apr_pool_t *pool)
{
    return write_assistant(body, db, &update_assistant, write, err, pool);
}

static const agent_statement_t delete_assistant = {
    .name = "agent_delete_assistant",
    .params = 4,
    .sql = "select code, body, changed from agent.delete_assistant($1, $2, $3, "
           "$4)"};

apr_status_t agent_assistant_delete(const char **before, const char **changed,
                                    agent_db_pool_t *db,
                                    const agent_run_ref_t *ref,
                                    const char *assistant_id, bool with_threads,
                                    agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, assistant_id,
                            with_threads ? "true" : "false", *before};

    return agent_db_pool_call_extra(before, changed, db, &delete_assistant,
                                    params, err, pool);
}

static const agent_statement_t list_versions = {
    .name = "agent_list_assistant_versions",
    .params = 5,
    .is_repeatable = true,
    .sql = "select code, body, next from agent.list_assistant_versions($1, $2, "
           "$3, $4, $5)"};

apr_status_t agent_assistant_list_versions(agent_page_t *page,
                                           agent_db_pool_t *db,
                                           const agent_assistant_query_t *query,
                                           agent_error_t **err,
                                           apr_pool_t *pool)
{
    const char *params[] = {query->deployment_id, query->assistant_id,
                            query->request, query->max_bytes,
                            query->max_bytes == NULL ? "t" : "f"};

    return agent_db_pool_call_extra(&page->body, &page->next, db,
                                    &list_versions, params, err, pool);
}

static const agent_statement_t set_version = {
    .name = "agent_set_assistant_version",
    .params = 3,
    .sql = "select code, body from agent.set_assistant_version($1, $2, $3)"};

apr_status_t agent_assistant_set_version(const char **body, agent_db_pool_t *db,
                                         const agent_run_ref_t *ref,
                                         const char *assistant_id, int version,
                                         agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, assistant_id,
                            apr_itoa(pool, version)};

    return agent_db_pool_call(body, db, &set_version, params, err, pool);
}

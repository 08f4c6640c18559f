/* SPDX-License-Identifier: Apache-2.0 */
/* The store; see store.h. */
#include "store.h"

static const agent_statement_t put_item = {
    .name = "agent_put_item",
    .params = 3,
    .is_repeatable = true,
    .sql = "select code, body from agent.put_item($1, $2, $3)"};

apr_status_t agent_store_put(agent_db_pool_t *db, const agent_run_ref_t *ref,
                             const char *ttl, const char *request,
                             agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, request, ttl};
    const char *body;

    return agent_db_pool_call(&body, db, &put_item, params, err, pool);
}

static const agent_statement_t delete_item = {
    .name = "agent_delete_item",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body from agent.delete_item($1, $2)"};

apr_status_t agent_store_delete(agent_db_pool_t *db, const agent_run_ref_t *ref,
                                const char *request, agent_error_t **err,
                                apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, request};
    const char *body;

    return agent_db_pool_call(&body, db, &delete_item, params, err, pool);
}

static const agent_statement_t get_item = {
    .name = "agent_get_item",
    .params = 4,
    .is_repeatable = true,
    .sql = "select code, body from agent.get_item($1, $2, $3, $4)"};

apr_status_t agent_store_get(const char **body, agent_db_pool_t *db,
                             const agent_run_ref_t *ref,
                             const agent_item_ref_t *item, agent_error_t **err,
                             apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, item->namespace, item->key,
                            item->refresh ? "true" : "false"};

    return agent_db_pool_call(body, db, &get_item, params, err, pool);
}

static const agent_statement_t search_items = {
    .name = "agent_search_items",
    .params = 4,
    .is_repeatable = true,
    .sql = "select code, body, next from agent.search_items($1, $2, $3, "
           "$4)"};

apr_status_t agent_store_search(agent_page_t *page, agent_db_pool_t *db,
                                const agent_run_ref_t *ref, const char *request,
                                const char *max_bytes, agent_error_t **err,
                                apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, request, max_bytes,
                            max_bytes == NULL ? "t" : "f"};

    return agent_db_pool_call_extra(&page->body, &page->next, db, &search_items,
                                    params, err, pool);
}

static const agent_statement_t list_namespaces = {
    .name = "agent_list_namespaces",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body from agent.list_namespaces($1, $2)"};

apr_status_t agent_store_list(const char **body, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, const char *request,
                              agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, request};

    return agent_db_pool_call(body, db, &list_namespaces, params, err, pool);
}

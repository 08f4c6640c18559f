/* SPDX-License-Identifier: Apache-2.0 */
/* /store: items that outlive threads, and their namespaces. */
#include "handlers.h"

#include <apr_strings.h>

#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/schema.h"
#include "../model/store.h"
#include "../stream/list.h"
#include "creation.h"

static apr_status_t read_body(agent_call_t *call, agent_store_body_t kind)
{
    agent_raw_t value;

    return (kind == AGENT_STORE_SEARCH ? agent_request_small_body(&value, call)
                                       : agent_request_body(&value, call))
            == APR_SUCCESS
        ? agent_schema_store(kind, value, &call->err, call->pool)
        : APR_EGENERAL;
}

int agent_handle_item_put(agent_call_t *call)
{
    if (read_body(call, AGENT_STORE_PUT) != APR_SUCCESS
        || agent_store_put(call->db, &call->ref,
                           agent_creation_print_ttl(
                               call, agent_location_store_ttl(call->dir)),
                           call->body, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_empty(call, HTTP_NO_CONTENT);
}

int agent_handle_item_delete(agent_call_t *call)
{
    if (read_body(call, AGENT_STORE_DELETE) != APR_SUCCESS
        || agent_store_delete(call->db, &call->ref, call->body, &call->err,
                              call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_empty(call, HTTP_NO_CONTENT);
}

/* The labels are joined by periods, or the parameter is repeated. */
static const char *join_labels(agent_call_t *call)
{
    const char *const *texts = NULL;
    const char *labels;

    agent_request_texts(&texts, call, "namespace");
    if (texts == NULL) {
        return "";
    }
    labels = *texts++;
    /* Bounded: AGENT_QUERY_PARAMS. */
    for (; *texts != NULL; texts++) {
        labels = apr_pstrcat(call->pool, labels, ".", *texts, NULL);
    }
    return labels;
}

static apr_status_t read_item_ref(agent_item_ref_t *item, agent_call_t *call)
{
    const char *const *keys = NULL;

    agent_request_texts(&keys, call, "key");
    item->namespace = join_labels(call);
    item->key = keys != NULL ? keys[0] : "";
    item->refresh = true;
    if (!agent_schema_is_namespace(item->namespace)) {
        return agent_error_set(&call->err, AGENT_E_INVALID,
                               "Query parameter namespace: expected 1 to 32 "
                               "labels, joined by periods.",
                               NULL, call->pool);
    }
    if (!agent_schema_is_item_key(item->key)) {
        return agent_error_set(&call->err, AGENT_E_INVALID,
                               "Query parameter key: expected 1 to 1024 bytes.",
                               NULL, call->pool);
    }
    return agent_request_flag(&item->refresh, call, "refresh_ttl");
}

int agent_handle_item_get(agent_call_t *call)
{
    agent_item_ref_t item;
    const char *body;

    if (read_item_ref(&item, call) != APR_SUCCESS
        || agent_store_get(&body, call->db, &call->ref, &item, &call->err,
                           call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

static apr_status_t read_items(agent_page_t *page, agent_call_t *call,
                               agent_db_pool_t *db,
                               const agent_list_request_t *request,
                               const char *max_bytes, apr_pool_t *pool)
{
    return agent_store_search(page, db, &call->ref, request->json, max_bytes,
                              &call->err, pool);
}

int agent_handle_item_search(agent_call_t *call)
{
    agent_list_request_t request = {
        .read = read_items,
        .records = {.kind = "items", .deployment_id = call->ref.deployment_id}};

    if (read_body(call, AGENT_STORE_SEARCH) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    request.json = call->body;
    return agent_list_respond(call, &request);
}

int agent_handle_namespace_list(agent_call_t *call)
{
    const char *body;

    if (read_body(call, AGENT_STORE_LIST) != APR_SUCCESS
        || agent_store_list(&body, call->db, &call->ref, call->body, &call->err,
                            call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

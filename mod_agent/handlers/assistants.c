/* SPDX-License-Identifier: Apache-2.0 */
/* /assistants: assistants, and the schemas and drawings of their graphs. */
#include "handlers.h"

#include <apr_strings.h>

#include "../core/uuid.h"
#include "../core/wake.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/requester.h"
#include "../http/response.h"
#include "../model/assistant.h"
#include "../model/schema.h"
#include "../stream/deletion.h"
#include "../stream/list.h"
#include "../stream/update.h"
#include "creation.h"

int agent_handle_assistant_get(agent_call_t *call)
{
    const char *body;

    if (agent_assistant_get(&body, call->db, &call->ref, call->assistant_id,
                            &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

static int send_description(agent_call_t *call,
                            const agent_assistant_describe_t *describe)
{
    const char *body = NULL;
    const char *changed;

    call->ref.run_id = agent_creation_new_id(call);
    if (agent_assistant_describe(&body, &changed, call->db, &call->ref,
                                 describe, &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    if (body != NULL) {
        return agent_response_json(call, HTTP_OK, body);
    }
    call->ref.run_id = apr_pstrmemdup(call->pool, changed, AGENT_UUID_SIZE - 1);
    call->ref.thread_id = call->ref.run_id;
    agent_wake_ready(call->child->wake_fd, call->ref.deployment_id, changed);
    return agent_update_await(call);
}

static agent_assistant_describe_t describe(const agent_call_t *call,
                                           const char *what)
{
    return (agent_assistant_describe_t){
        .assistant_id = call->assistant_id,
        .what = what,
        .timeout = agent_location_call_timeout(call->dir)};
}

int agent_handle_assistant_schemas(agent_call_t *call)
{
    const agent_assistant_describe_t schemas = describe(call, "schemas");

    return send_description(call, &schemas);
}

/* xray: the levels of subgraphs that are drawn; true: all. */
int agent_handle_assistant_graph(agent_call_t *call)
{
    agent_assistant_describe_t graph = describe(call, "graph");

    return agent_request_depth(&graph.depth, call, "xray", 1000,
                               AGENT_ASSISTANT_ANY_DEPTH)
            == APR_SUCCESS
        ? send_description(call, &graph)
        : agent_problem_send(call);
}

/* With a namespace in the path: of that subgraph. */
int agent_handle_assistant_subgraphs(agent_call_t *call)
{
    agent_assistant_describe_t subgraphs = describe(call, "subgraphs");

    subgraphs.namespace = call->namespace;
    return agent_request_flag(&subgraphs.recurse, call, "recurse")
            == APR_SUCCESS
        ? send_description(call, &subgraphs)
        : agent_problem_send(call);
}

/* Reads the body of a search, a count or a list of versions. */
static apr_status_t read_search(agent_call_t *call)
{
    agent_raw_t value;

    return agent_request_small_body(&value, call) == APR_SUCCESS
        ? agent_schema_assistants(&call->fields, value, &call->err, call->pool)
        : APR_EGENERAL;
}

/* request: the body of the call. */
static agent_assistant_query_t describe_query(const agent_call_t *call,
                                              const char *request,
                                              const char *max_bytes)
{
    return (agent_assistant_query_t){
        .deployment_id = call->ref.deployment_id,
        .assistant_id = call->assistant_id,
        .known_graph_ids = agent_creation_list_graphs(call),
        .request = request,
        .max_bytes = max_bytes};
}

static apr_status_t read_assistants(agent_page_t *page, agent_call_t *call,
                                    agent_db_pool_t *db,
                                    const agent_list_request_t *request,
                                    const char *max_bytes, apr_pool_t *pool)
{
    const agent_assistant_query_t query = describe_query(call, request->json,
                                                         max_bytes);

    return agent_assistant_search(page, db, &query, &call->err, pool);
}

static apr_status_t read_versions(agent_page_t *page, agent_call_t *call,
                                  agent_db_pool_t *db,
                                  const agent_list_request_t *request,
                                  const char *max_bytes, apr_pool_t *pool)
{
    const agent_assistant_query_t query = describe_query(call, request->json,
                                                         max_bytes);

    return agent_assistant_list_versions(page, db, &query, &call->err, pool);
}

int agent_handle_assistant_search(agent_call_t *call)
{
    agent_list_request_t request = {
        .read = read_assistants,
        .records = {.kind = "assistants",
                    .deployment_id = call->ref.deployment_id}};

    if (read_search(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    request.json = call->body;
    request.records.request = call->body;
    return agent_list_respond(call, &request);
}

int agent_handle_assistant_count(agent_call_t *call)
{
    agent_assistant_query_t query;
    const char *body;

    if (read_search(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    query = describe_query(call, call->body, NULL);
    return agent_assistant_count(&body, call->db, &query, &call->err,
                                 call->pool)
            == APR_SUCCESS
        ? agent_response_json(call, HTTP_OK, body)
        : agent_problem_send(call);
}

int agent_handle_assistant_versions(agent_call_t *call)
{
    agent_list_request_t request = {
        .read = read_versions,
        .records = {.kind = "versions",
                    .deployment_id = call->ref.deployment_id,
                    .parent_id = call->assistant_id}};

    if (read_search(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    request.json = call->body;
    return agent_list_respond(call, &request);
}

static agent_assistant_write_t describe_write(const agent_call_t *call)
{
    return (agent_assistant_write_t){
        .deployment_id = call->ref.deployment_id,
        .assistant_id = call->assistant_id,
        .known_graph_ids = agent_creation_list_graphs(call),
        .request = call->body};
}

int agent_handle_assistant_create(agent_call_t *call)
{
    agent_assistant_write_t write;
    const char *body;
    agent_raw_t value;

    if (agent_request_body(&value, call) != APR_SUCCESS
        || agent_schema_new_assistant(&call->fields, value, &call->err,
                                      call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    call->assistant_id = agent_creation_choose_id(call, "assistant_id");
    write = describe_write(call);
    if (agent_assistant_create(&body, call->db, &write, &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_assistant_update(agent_call_t *call)
{
    agent_assistant_write_t write;
    const char *body;
    agent_raw_t value;

    if (agent_request_body(&value, call) != APR_SUCCESS
        || agent_schema_assistant(value, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    write = describe_write(call);
    if (agent_assistant_update(&body, call->db, &write, &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_assistant_delete(agent_call_t *call)
{
    bool with_threads = false;

    if (agent_request_flag(&with_threads, call, "delete_threads") != APR_SUCCESS
        || (with_threads
            && agent_requester_check_scope(call, AGENT_SCOPE_RUN)
                != APR_SUCCESS)) {
        return agent_problem_send(call);
    }
    return agent_deletion_delete_assistant(call, with_threads);
}

/* The version is a member of the body, or a parameter. */
int agent_handle_assistant_latest(agent_call_t *call)
{
    const char *body;
    agent_raw_t value;
    int version = 0;

    if (agent_request_number(&version, call, "version", 1, APR_INT32_MAX)
            != APR_SUCCESS
        || agent_request_body(&value, call) != APR_SUCCESS
        || agent_schema_version(&version, value, &call->err, call->pool)
            != APR_SUCCESS
        || agent_assistant_set_version(&body, call->db, &call->ref,
                                       call->assistant_id, version, &call->err,
                                       call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

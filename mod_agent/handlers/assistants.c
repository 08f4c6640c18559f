/* SPDX-License-Identifier: Apache-2.0 */
/* /assistants: assistants, and the schemas and drawings of their graphs. */
#include "handlers.h"

#include <apr_strings.h>

#include "../core/uuid.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/assistant.h"
#include "../model/schema.h"
#include "../stream/deletion.h"
#include "../stream/page.h"
#include "creation.h"

/* Of a search, a count or a list of versions: 64 keys of metadata with 576
 * bytes each, and more. It is kept while a search waits for its turn. */
#define SEARCH_BYTES 65536

static int send_view(agent_call_t *call, agent_assistant_view_t view)
{
    const char *body;

    if (agent_assistant_get(&body, call->db, &call->ref, call->assistant_id,
                            view, &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_assistant_get(agent_call_t *call)
{
    return send_view(call, AGENT_ASSISTANT_RECORD);
}

int agent_handle_assistant_schemas(agent_call_t *call)
{
    return send_view(call, AGENT_ASSISTANT_SCHEMAS);
}

/* xray: how deep subgraphs are drawn; true is any depth. Checked and otherwise
 * ignored: built-in graphs have no subgraphs. */
int agent_handle_assistant_graph(agent_call_t *call)
{
    bool flag = false;
    int depth = 0;

    if (agent_request_flag(&flag, call, "xray") != APR_SUCCESS
        && agent_request_number(&depth, call, "xray", 0, 1000) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return send_view(call, AGENT_ASSISTANT_DRAWING);
}

/* Built-in graphs have no subgraphs, of any namespace. */
int agent_handle_assistant_subgraphs(agent_call_t *call)
{
    bool recurse = false;
    const char *record;

    if (agent_request_flag(&recurse, call, "recurse") != APR_SUCCESS
        || agent_assistant_get(&record, call->db, &call->ref,
                               call->assistant_id, AGENT_ASSISTANT_RECORD,
                               &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, "{}");
}

/* Reads the body of a search, a count or a list of versions. */
static apr_status_t read_search(agent_call_t *call)
{
    agent_raw_t value;

    if (call->body_length > SEARCH_BYTES) {
        return agent_error_setf(&call->err, AGENT_E_TOO_LARGE, call->pool,
                                "The body of a search is larger than %d bytes.",
                                SEARCH_BYTES);
    }
    return agent_request_body(&value, call) == APR_SUCCESS
        ? agent_schema_assistants(&call->fields, value, &call->err, call->pool)
        : APR_EGENERAL;
}

static agent_assistant_query_t describe_query(const agent_call_t *call,
                                              const char *max_bytes)
{
    return (agent_assistant_query_t){.deployment_id = call->ref.deployment_id,
                                     .assistant_id = call->assistant_id,
                                     .request = call->body,
                                     .max_bytes = max_bytes};
}

static apr_status_t read_assistants(agent_page_t *page, agent_call_t *call,
                                    agent_db_pool_t *db, const void *request,
                                    const char *max_bytes, apr_pool_t *pool)
{
    const agent_assistant_query_t query = describe_query(call, max_bytes);

    return agent_assistant_search(page, db, &query, &call->err, pool);
}

static apr_status_t read_versions(agent_page_t *page, agent_call_t *call,
                                  agent_db_pool_t *db, const void *request,
                                  const char *max_bytes, apr_pool_t *pool)
{
    const agent_assistant_query_t query = describe_query(call, max_bytes);

    return agent_assistant_list_versions(page, db, &query, &call->err, pool);
}

int agent_handle_assistant_search(agent_call_t *call)
{
    return read_search(call) == APR_SUCCESS
        ? agent_page_respond(call, read_assistants, NULL)
        : agent_problem_send(call);
}

int agent_handle_assistant_count(agent_call_t *call)
{
    const char *body;

    if (read_search(call) != APR_SUCCESS
        || agent_assistant_count(&body, call->db, &call->ref, call->body,
                                 &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_assistant_versions(agent_call_t *call)
{
    return read_search(call) == APR_SUCCESS
        ? agent_page_respond(call, read_versions, NULL)
        : agent_problem_send(call);
}

static agent_assistant_write_t describe_write(const agent_call_t *call)
{
    return (agent_assistant_write_t){
        .deployment_id = call->ref.deployment_id,
        .assistant_id = call->assistant_id,
        .known_graph_ids = agent_creation_list_graphs(call),
        .request = call->body};
}

/* The client's id in lower case, or a new one. */
static const char *choose_assistant_id(const agent_call_t *call)
{
    char id[AGENT_UUID_SIZE];

    return agent_uuid_parse(
               id, agent_field_string(call->fields, "assistant_id", ""))
        ? apr_pstrdup(call->pool, id)
        : agent_creation_new_id(call);
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
    call->assistant_id = choose_assistant_id(call);
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

    if (agent_request_flag(&with_threads, call, "delete_threads")
        != APR_SUCCESS) {
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

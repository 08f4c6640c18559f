/* SPDX-License-Identifier: Apache-2.0 */
/* /threads: threads and their events. */
#include "handlers.h"

#include <apr_strings.h>
#include <string.h>

#include "../core/wake.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/schema.h"
#include "../model/state.h"
#include "../model/thread.h"
#include "../stream/copy.h"
#include "../stream/deletion.h"
#include "../stream/large_values.h"
#include "../stream/list.h"
#include "../stream/thread_stream.h"
#include "../stream/update.h"
#include "creation.h"

static bool has_supersteps(const agent_call_t *call)
{
    agent_raw_t value = agent_field_raw(call->fields, "supersteps");

    return agent_raw_kind(value) == AGENT_RAW_ARRAY
        && *agent_raw_element_find(value.text) != '\0';
}

/* Creates a thread whose state its graph computes from the supersteps. */
static int create_with_state(agent_call_t *call)
{
    agent_run_creation_t headers = {0};
    agent_state_creation_t creation = {
        .ref = &call->ref,
        .if_exists = agent_field_string(call->fields, "if_exists", "raise"),
        .timeout = agent_location_call_timeout(call->dir),
        .ttl = agent_creation_thread_ttl(call),
        .request = call->body};
    const char *body;
    const char *changed;

    call->ref.run_id = agent_creation_new_id(call);
    if (agent_creation_check_room(call, false) != APR_SUCCESS
        || agent_creation_read_headers(&headers, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    creation.user_id = headers.user_id;
    if (agent_state_create(&body, &changed, call->db, &creation, &call->err,
                           call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    if (changed == NULL) {
        return agent_response_json(call, HTTP_OK, body);
    }
    agent_wake_ready(call->child->wake_fd, call->ref.deployment_id, changed);
    return agent_update_await(call);
}

int agent_handle_thread_create(agent_call_t *call)
{
    const char *body;
    agent_raw_t value;

    if (agent_request_body(&value, call) != APR_SUCCESS
        || agent_schema_thread(&call->fields, value, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    call->ref.thread_id = agent_creation_choose_id(call, "thread_id");
    if (has_supersteps(call)) {
        return create_with_state(call);
    }
    if (agent_thread_create(
            &body, call->db, &call->ref,
            agent_field_string(call->fields, "if_exists", "raise"),
            agent_creation_thread_ttl(call), call->body, &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_thread_get(agent_call_t *call)
{
    const char *const *include = NULL;
    const char *body;
    const char *cursor;
    apr_pool_t *pool;

    apr_pool_create(&pool, call->pool);
    if (agent_request_words(&include, call, "include", agent_thread_fields)
            != APR_SUCCESS
        || agent_thread_get(&body, &cursor, call->db, &call->ref,
                            include != NULL, &call->err, pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_large_values_respond(call, body, cursor, pool);
}

static apr_status_t read_search(agent_call_t *call)
{
    agent_raw_t value;

    return agent_request_small_body(&value, call) == APR_SUCCESS
        ? agent_schema_threads(value, &call->err, call->pool)
        : APR_EGENERAL;
}

static apr_status_t read_threads(agent_page_t *page, agent_call_t *call,
                                 agent_db_pool_t *db,
                                 const agent_list_request_t *request,
                                 const char *max_bytes, apr_pool_t *pool)
{
    return agent_thread_search(page, db, call->ref.deployment_id, request->json,
                               max_bytes, &call->err, pool);
}

static apr_status_t read_count(agent_page_t *page, agent_call_t *call,
                               agent_db_pool_t *db,
                               const agent_list_request_t *request,
                               const char *max_bytes, apr_pool_t *pool)
{
    return agent_thread_count(page, db, call->ref.deployment_id, request->json,
                              max_bytes, &call->err, pool);
}

static apr_status_t read_storage(agent_page_t *page, agent_call_t *call,
                                 agent_db_pool_t *db,
                                 const agent_list_request_t *request,
                                 const char *max_bytes, apr_pool_t *pool)
{
    return agent_thread_get_storage(page, db, &call->ref, max_bytes, &call->err,
                                    pool);
}

static const agent_list_request_t storage = {.read = read_storage};

int agent_handle_thread_storage(agent_call_t *call)
{
    return agent_list_respond(call, &storage);
}

int agent_handle_thread_search(agent_call_t *call)
{
    agent_list_request_t request = {
        .read = read_threads,
        .records = {.kind = "threads",
                    .deployment_id = call->ref.deployment_id}};

    if (read_search(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    request.json = call->body;
    request.records.request = call->body;
    return agent_list_respond(call, &request);
}

int agent_handle_thread_count(agent_call_t *call)
{
    agent_list_request_t request = {.read = read_count};

    if (read_search(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    request.json = call->body;
    return agent_list_respond(call, &request);
}

/* Whether the client wants no representation in the response (RFC 7240). */
static bool prefers_minimal(const agent_call_t *call)
{
    const char *prefer = apr_table_get(call->r->headers_in, "Prefer");

    return prefer != NULL
        && ap_find_list_item(call->pool, prefer, "return=minimal") != 0;
}

int agent_handle_thread_update(agent_call_t *call)
{
    const char *body;
    const char *cursor;
    agent_raw_t value;
    apr_pool_t *pool;

    apr_pool_create(&pool, call->pool);
    if (agent_request_body(&value, call) != APR_SUCCESS
        || agent_schema_thread_update(value, &call->err, call->pool)
            != APR_SUCCESS
        || agent_thread_update(&body, &cursor, call->db, &call->ref, call->body,
                               &call->err, pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return prefers_minimal(call)
        ? agent_response_empty(call, HTTP_NO_CONTENT)
        : agent_large_values_respond(call, body, cursor, pool);
}

int agent_handle_thread_delete(agent_call_t *call)
{
    return agent_deletion_delete_thread(call);
}

int agent_handle_thread_prune(agent_call_t *call)
{
    agent_raw_t value;

    if (agent_request_body(&value, call) != APR_SUCCESS
        || agent_schema_prune(&call->fields, value, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_deletion_prune_threads(
        call, agent_field_uuids(call->fields, "thread_ids"),
        strcmp(agent_field_string(call->fields, "strategy", ""), "keep_latest")
            == 0);
}

int agent_handle_thread_copy(agent_call_t *call)
{
    return agent_copy_respond(call);
}

int agent_handle_thread_stream(agent_call_t *call)
{
    agent_response_set_location(call,
                                apr_pstrcat(call->pool, "/threads/",
                                            call->ref.thread_id, "/stream",
                                            NULL));
    return agent_thread_stream(call);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* /threads/{thread_id}/state and /history: the states of a thread. */
#include "handlers.h"

#include "../core/raw.h"
#include "../core/wake.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/schema.h"
#include "../model/state.h"
#include "../model/thread.h"
#include "../stream/large_values.h"
#include "../stream/list.h"
#include "../stream/update.h"
#include "creation.h"

static apr_status_t read_select(agent_state_query_t *query, agent_call_t *call)
{
    return agent_request_words(&query->select, call, "select",
                               agent_state_fields);
}

/* checkpoint_id NULL: the one that request names. request: as in
 * agent_thread_get_state(). */
static int send_state(agent_call_t *call, const char *checkpoint_id,
                      const char *request)
{
    const char *body;
    const char *cursor;
    apr_pool_t *pool;

    apr_pool_create(&pool, call->pool);
    if (agent_thread_get_state(&body, &cursor, call->db, &call->ref,
                               checkpoint_id, request, &call->err, pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_large_values_respond(call, body, cursor, pool);
}

static apr_status_t read_deep_state(agent_page_t *page, agent_call_t *call,
                                    agent_db_pool_t *db,
                                    const agent_list_request_t *request,
                                    const char *max_bytes, apr_pool_t *pool)
{
    return agent_thread_get_deep_state(page, db, &call->ref, request->filter,
                                       request->json, max_bytes, &call->err,
                                       pool);
}

/* Responds with the state and those of its subgraphs, which request asks for.
 */
static int send_deep_state(agent_call_t *call, const char *checkpoint_id,
                           const char *request)
{
    const agent_list_request_t page = {
        .read = read_deep_state, .filter = checkpoint_id, .json = request};

    return agent_list_respond(call, &page);
}

/* checkpoint_id NULL: the newest state. */
static int get_state(agent_call_t *call, const char *checkpoint_id)
{
    agent_state_query_t query = {0};
    const char *request;

    if (agent_request_flag(&query.subgraphs, call, "subgraphs") != APR_SUCCESS
        || read_select(&query, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    request = agent_state_print_query(&query, call->pool);
    return query.subgraphs ? send_deep_state(call, checkpoint_id, request)
                           : send_state(call, checkpoint_id, request);
}

int agent_handle_state_get(agent_call_t *call)
{
    return get_state(call, NULL);
}

int agent_handle_state_at(agent_call_t *call)
{
    return get_state(call, call->checkpoint_id);
}

/* Reads a body and checks it with one of two functions of model/schema.h. */
static apr_status_t read_body(agent_call_t *call,
                              apr_status_t (*check)(agent_raw_t body,
                                                    const char *thread_id,
                                                    agent_error_t **err,
                                                    apr_pool_t *pool))
{
    agent_raw_t value;

    return agent_request_small_body(&value, call) == APR_SUCCESS
        ? check(value, call->ref.thread_id, &call->err, call->pool)
        : APR_EGENERAL;
}

int agent_handle_state_checkpoint(agent_call_t *call)
{
    agent_raw_t flag;

    if (read_body(call, agent_schema_state_at) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    flag = agent_raw_get(agent_raw_read(call->body), "subgraphs");
    return flag.length > 0 && *flag.text == 't'
        ? send_deep_state(call, NULL, call->body)
        : send_state(call, NULL, call->body);
}

static apr_status_t read_history(agent_page_t *page, agent_call_t *call,
                                 agent_db_pool_t *db,
                                 const agent_list_request_t *request,
                                 const char *max_bytes, apr_pool_t *pool)
{
    return agent_thread_get_history(page, db, &call->ref, request->json,
                                    max_bytes, &call->err, pool);
}

/* request: as of agent_thread_get_history(). */
static int send_history(agent_call_t *call, const char *request)
{
    const agent_list_request_t list = {
        .read = read_history,
        .json = request,
        .records = {.kind = "states",
                    .deployment_id = call->ref.deployment_id,
                    .parent_id = call->ref.thread_id,
                    .request = request}};

    return agent_list_respond(call, &list);
}

int agent_handle_history_get(agent_call_t *call)
{
    agent_state_query_t query = {.limit = 10};

    if (agent_request_number(&query.limit, call, "limit", 1, 1000)
            != APR_SUCCESS
        || agent_request_uuid(&query.before, call, "before") != APR_SUCCESS
        || read_select(&query, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return send_history(call, agent_state_print_query(&query, call->pool));
}

int agent_handle_history_post(agent_call_t *call)
{
    return read_body(call, agent_schema_history) == APR_SUCCESS
        ? send_history(call, call->body)
        : agent_problem_send(call);
}

/* Creates the call that applies the update, and wakes the supervisor. */
static apr_status_t update_state(agent_call_t *call)
{
    agent_run_creation_t headers = {0};
    const char *changed;
    agent_raw_t value;

    if (agent_creation_check_room(call, false) != APR_SUCCESS
        || agent_creation_read_headers(&headers, call) != APR_SUCCESS
        || agent_request_body(&value, call) != APR_SUCCESS
        || agent_schema_state(value, call->ref.thread_id, &call->err,
                              call->pool)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    call->ref.run_id = agent_creation_new_id(call);
    if (agent_state_update(&changed, call->db, &call->ref, headers.user_id,
                           agent_location_call_timeout(call->dir), call->body,
                           &call->err, call->pool)
        != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    agent_wake_ready(call->child->wake_fd, call->ref.deployment_id, changed);
    return APR_SUCCESS;
}

int agent_handle_state_update(agent_call_t *call)
{
    return update_state(call) == APR_SUCCESS ? agent_update_await(call)
                                             : agent_problem_send(call);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* /threads/{thread_id}/runs: the runs of a thread. POST /runs, /runs/wait and
 * /runs/stream, which create stateless runs, have the same handlers. */
#include "handlers.h"

#include <limits.h>
#include <string.h>

#include "../core/wake.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/run.h"
#include "../model/schema.h"
#include "../stream/await.h"
#include "../stream/deletion.h"
#include "../stream/disconnect.h"
#include "../stream/list.h"
#include "../stream/run_stream.h"
#include "creation.h"

/* Of the reason of a cancel, which is stored with the run. */
#define CANCEL_REASON_BYTES 256

static apr_status_t read_list(agent_page_t *page, agent_call_t *call,
                              agent_db_pool_t *db,
                              const agent_list_request_t *request,
                              const char *max_bytes, apr_pool_t *pool)
{
    agent_run_filter_t filter = *(const agent_run_filter_t *)request->filter;

    filter.max_bytes = max_bytes;
    return agent_run_list(page, db, &call->ref, &filter, &call->err, pool);
}

/* filter: NULL for a single run. */
static int respond(agent_call_t *call, const char *kind,
                   agent_list_read_fn_t read, const agent_run_filter_t *filter)
{
    const agent_list_request_t request = {
        .read = read,
        .filter = filter,
        .records = {.kind = kind,
                    .deployment_id = call->ref.deployment_id,
                    .parent_id = call->ref.thread_id,
                    .select = filter != NULL ? filter->select : NULL}};

    return agent_list_respond(call, &request);
}

int agent_handle_run_list(agent_call_t *call)
{
    agent_run_filter_t *filter = apr_pcalloc(call->pool, sizeof(*filter));

    filter->limit = 10;
    if (agent_request_number(&filter->limit, call, "limit", 1, 1000)
            != APR_SUCCESS
        || agent_request_number(&filter->offset, call, "offset", 0, INT_MAX)
            != APR_SUCCESS
        || agent_request_word(&filter->status, call, "status",
                              agent_run_statuses)
            != APR_SUCCESS
        || agent_request_words(&filter->select, call, "select",
                               agent_run_fields)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return respond(call, "runs", read_list, filter);
}

int agent_handle_run_create(agent_call_t *call)
{
    const char *body;

    return agent_creation_make(&body, call) == APR_SUCCESS
        ? agent_response_json(call, HTTP_OK, body)
        : agent_problem_send(call);
}

int agent_handle_run_create_wait(agent_call_t *call)
{
    return agent_creation_make_awaited(call, "/join") == APR_SUCCESS
        ? agent_await_values(call, agent_disconnect_read_body(call))
        : agent_problem_send(call);
}

int agent_handle_run_create_stream(agent_call_t *call)
{
    return agent_creation_make_awaited(call, "/stream") == APR_SUCCESS
        ? agent_run_stream_created(call)
        : agent_problem_send(call);
}

static apr_status_t read_run(agent_page_t *page, agent_call_t *call,
                             agent_db_pool_t *db,
                             const agent_list_request_t *request,
                             const char *max_bytes, apr_pool_t *pool)
{
    return agent_run_get(page, db, &call->ref, max_bytes, &call->err, pool);
}

int agent_handle_run_get(agent_call_t *call)
{
    return respond(call, "run", read_run, NULL);
}

int agent_handle_run_delete(agent_call_t *call)
{
    return agent_deletion_delete_run(call);
}

/* Only an interrupt may have a reason: a rollback leaves no record to store it
 * in. */
static apr_status_t read_cancel(agent_run_cancel_t *cancel, agent_call_t *call)
{
    if (agent_request_word(&cancel->action, call, "action",
                           agent_cancel_actions)
            != APR_SUCCESS
        || agent_request_text(&cancel->reason, call, "reason",
                              CANCEL_REASON_BYTES)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    return cancel->reason == NULL || strcmp(cancel->action, "interrupt") == 0
        ? APR_SUCCESS
        : agent_error_set(&call->err, AGENT_E_INVALID,
                          "Query parameter reason: expected none with "
                          "action=rollback, which deletes the run.",
                          NULL, call->pool);
}

int agent_handle_run_cancel(agent_call_t *call)
{
    agent_run_cancel_t cancel = {.action = "interrupt"};
    const char *changed;
    bool wait = false;

    if (read_cancel(&cancel, call) != APR_SUCCESS
        || agent_request_flag(&wait, call, "wait") != APR_SUCCESS
        || agent_run_cancel(&changed, call->db, &call->ref, &cancel, &call->err,
                            call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_wake_cancel(call->child->wake_fd, call->ref.deployment_id, changed);
    if (!wait) {
        return agent_response_empty(call, HTTP_ACCEPTED);
    }
    return agent_await_end(call);
}

int agent_handle_run_join(agent_call_t *call)
{
    bool cancels = false;

    if (agent_disconnect_read_query(&cancels, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_set_run_location(call, call->ref.thread_id, call->ref.run_id,
                                    "/join");
    return agent_await_values(call, cancels);
}

int agent_handle_run_stream(agent_call_t *call)
{
    agent_response_set_run_location(call, call->ref.thread_id, call->ref.run_id,
                                    "/stream");
    return agent_run_stream(call);
}

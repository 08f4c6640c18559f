/* SPDX-License-Identifier: Apache-2.0 */
/* /threads/{thread_id}/runs: list, get, delete, cancel. */
#include "handlers.h"

#include <limits.h>

#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/run.h"
#include "../model/schema.h"
#include "await.h"

int agent_handle_run_list(agent_call_t *call)
{
    agent_run_filter_t filter = {.limit = 10};
    const char *const ids[] = {call->account_id, call->ids[1]};
    const char *body;
    const char *next;

    if (agent_request_number(&filter.limit, call, "limit", 1, 1000)
            != APR_SUCCESS
        || agent_request_number(&filter.offset, call, "offset", 0, INT_MAX)
            != APR_SUCCESS
        || agent_request_word(&filter.status, call, "status",
                              agent_run_statuses)
            != APR_SUCCESS
        || agent_request_words(&filter.select, call, "select", agent_run_fields)
            != APR_SUCCESS
        || agent_run_list(&body, &next, call->db, ids, &filter, &call->err,
                          call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_next(call, next);
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_run_get(agent_call_t *call)
{
    const char *body;

    if (agent_run_get(&body, call->db, call->ids, &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_run_delete(agent_call_t *call)
{
    const char *changed;

    if (agent_run_delete(&changed, call->db, call->ids, &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_report_changed(call, changed);
    return agent_response_empty(call, HTTP_NO_CONTENT);
}

int agent_handle_run_cancel(agent_call_t *call)
{
    const char *action = "interrupt";
    const char *changed;
    bool wait = false;

    if (agent_request_word(&action, call, "action", agent_cancel_actions)
            != APR_SUCCESS
        || agent_request_flag(&wait, call, "wait") != APR_SUCCESS
        || agent_run_cancel(&changed, call->db, call->ids, action, &call->err,
                            call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_wake_supervisor(call, AGENT_WAKE_CANCEL);
    agent_report_changed(call, changed);
    if (!wait) {
        return agent_response_empty(call, HTTP_ACCEPTED);
    }
    return agent_await_end(call);
}

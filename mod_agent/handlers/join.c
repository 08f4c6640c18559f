/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a run's values: GET .../{run_id}/join, POST .../wait. */
#include "handlers.h"

#include "../http/problem.h"
#include "../http/response.h"
#include "../wait/park.h"
#include "abandon.h"
#include "await.h"

int agent_handle_run_join(agent_call_t *call)
{
    bool cancels = false;

    if (agent_abandon_read(&cancels, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, call->ids[1], call->ids[2], "/join");
    return agent_await_values(call, cancels);
}

int agent_handle_stateless_join(agent_call_t *call)
{
    bool cancels = false;

    if (agent_abandon_read(&cancels, call) != APR_SUCCESS
        || agent_find_run(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, NULL, call->ids[2], "/join");
    return agent_await_values(call, cancels);
}

int agent_handle_run_create_wait(agent_call_t *call)
{
    const char *body;

    /* No run is made for somebody who could not wait for it. */
    if (agent_park_check(call->r, call->child->waits, &call->err) != APR_SUCCESS
        || agent_create_run(&body, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, call->ids[1], call->ids[2], "/join");
    return agent_await_values(call, agent_abandon_wanted(call));
}

int agent_handle_stateless_create_wait(agent_call_t *call)
{
    const char *body;

    if (agent_park_check(call->r, call->child->waits, &call->err) != APR_SUCCESS
        || agent_create_stateless_run(&body, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, NULL, call->ids[2], "/join");
    return agent_await_values(call, agent_abandon_wanted(call));
}

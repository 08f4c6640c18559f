/* SPDX-License-Identifier: Apache-2.0 */
/* /runs: stateless runs. Each executes on a hidden thread of its own, and its
 * paths name the run alone. */
#include "handlers.h"

#include "../http/problem.h"
#include "../http/response.h"
#include "../model/run.h"
#include "../stream/await.h"
#include "../stream/disconnect.h"
#include "../stream/run_stream.h"
#include "../wait/park.h"
#include "creation.h"

int agent_handle_stateless_create(agent_call_t *call)
{
    const char *body;

    if (agent_creation_stateless(&body, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, NULL, call->ref.run_id, NULL);
    return agent_response_json(call, HTTP_OK, body);
}

/* Refuses before the run is created if the request could not wait for it. */
static apr_status_t create_and_wait(agent_call_t *call, const char *again)
{
    const char *body;

    if (agent_park_check(call->r, call->child->waiters, &call->err)
            != APR_SUCCESS
        || agent_creation_stateless(&body, call) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    agent_response_locate(call, NULL, call->ref.run_id, again);
    return APR_SUCCESS;
}

int agent_handle_stateless_create_wait(agent_call_t *call)
{
    return create_and_wait(call, "/join") == APR_SUCCESS
        ? agent_await_values(call, agent_disconnect_read_body(call))
        : agent_problem_send(call);
}

int agent_handle_stateless_create_stream(agent_call_t *call)
{
    return create_and_wait(call, "/stream") == APR_SUCCESS
        ? agent_run_stream_created(call)
        : agent_problem_send(call);
}

/* Completes call->ref: the path has no thread. */
static apr_status_t find_thread(agent_call_t *call)
{
    return agent_run_find_thread(&call->ref.thread_id, call->db, &call->ref,
                                 &call->err, call->pool);
}

int agent_handle_stateless_join(agent_call_t *call)
{
    bool cancels = false;

    if (agent_disconnect_read_query(&cancels, call) != APR_SUCCESS
        || find_thread(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, NULL, call->ref.run_id, "/join");
    return agent_await_values(call, cancels);
}

int agent_handle_stateless_stream(agent_call_t *call)
{
    if (find_thread(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, NULL, call->ref.run_id, "/stream");
    return agent_run_stream(call);
}

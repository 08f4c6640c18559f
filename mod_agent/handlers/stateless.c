/* SPDX-License-Identifier: Apache-2.0 */
/* /runs/{run_id}: runs by their id alone, as stateless runs are addressed. */
#include "handlers.h"

#include "../http/problem.h"
#include "../http/response.h"
#include "../model/run.h"
#include "../stream/await.h"
#include "../stream/disconnect.h"
#include "../stream/run_stream.h"

/* Sets call->ref.thread_id. */
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
    agent_response_set_run_location(call, NULL, call->ref.run_id, "/join");
    return agent_await_values(call, cancels);
}

int agent_handle_stateless_stream(agent_call_t *call)
{
    if (find_thread(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_set_run_location(call, NULL, call->ref.run_id, "/stream");
    return agent_run_stream(call);
}

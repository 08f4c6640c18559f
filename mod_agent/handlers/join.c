/* SPDX-License-Identifier: Apache-2.0 */
/* GET /threads/{thread_id}/runs/{run_id}/join: wait for a run's values. */
#include "handlers.h"

#include "../http/problem.h"
#include "../http/response.h"
#include "../model/run.h"
#include "await.h"

int agent_handle_run_join(agent_call_t *call)
{
    const char *body;
    apr_status_t rv = agent_run_join(&body, call->db, call->ids, &call->err,
                                     call->pool);

    agent_response_locate(call, call->ids[1], call->ids[2], NULL);
    if (rv == APR_EAGAIN) {
        return agent_await_values(call);
    }
    if (rv != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

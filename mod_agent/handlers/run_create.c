/* SPDX-License-Identifier: Apache-2.0 */
/* POST /threads/{thread_id}/runs: start a run in the background. */
#include "handlers.h"

#include "../http/problem.h"
#include "../http/response.h"
#include "creation.h"

apr_status_t agent_create_run(const char **body, agent_call_t *call)
{
    agent_run_creation_t creation = {0};
    const char *changed;

    if (agent_creation_read(&creation, call) != APR_SUCCESS
        || agent_run_create(body, &changed, call->db, &creation, &call->err,
                            call->pool)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    agent_creation_name(call, &creation, *body);
    agent_wake_supervisor(call, AGENT_WAKE_READY);
    agent_report_changed(call, changed);
    return APR_SUCCESS;
}

int agent_handle_run_create(agent_call_t *call)
{
    const char *body;

    if (agent_create_run(&body, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, call->ids[1], call->ids[2], NULL);
    return agent_response_json(call, HTTP_OK, body);
}

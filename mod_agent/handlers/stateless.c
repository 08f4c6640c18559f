/* SPDX-License-Identifier: Apache-2.0 */
/* /runs: runs without a thread of the client's. */
#include "handlers.h"

#include "../http/problem.h"
#include "../http/response.h"
#include "../model/run.h"
#include "creation.h"

apr_status_t agent_create_stateless_run(const char **body, agent_call_t *call)
{
    agent_run_creation_t creation = {0};

    call->ids[1] = NULL;
    if (agent_creation_read(&creation, call) != APR_SUCCESS
        || agent_run_create_stateless(body, call->db, &creation, &call->err,
                                      call->pool)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    agent_creation_name(call, &creation, *body);
    agent_wake_supervisor(call, AGENT_WAKE_READY);
    return APR_SUCCESS;
}

apr_status_t agent_find_run(agent_call_t *call)
{
    call->ids[2] = call->ids[1];
    return agent_run_find_thread(&call->ids[1], call->db, call->account_id,
                                 call->ids[2], &call->err, call->pool);
}

int agent_handle_stateless_create(agent_call_t *call)
{
    const char *body;

    if (agent_create_stateless_run(&body, call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_locate(call, NULL, call->ids[2], NULL);
    return agent_response_json(call, HTTP_OK, body);
}

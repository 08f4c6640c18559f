/* SPDX-License-Identifier: Apache-2.0 */
/* The end of responses whose API key is no longer valid; see invalid_key.h. */
#include "invalid_key.h"

#include "../http/problem.h"
#include "../http/response.h"

apr_status_t agent_invalid_key_check(agent_call_t *call)
{
    if (call->renew(call) == APR_SUCCESS) {
        return APR_SUCCESS;
    }
    if (call->err->id != AGENT_E_POOL_EXHAUSTED) {
        call->r->connection->keepalive = AP_CONN_CLOSE;
    }
    return APR_EGENERAL;
}

apr_status_t agent_invalid_key_set(agent_call_t *call)
{
    call->r->connection->keepalive = AP_CONN_CLOSE;
    return agent_error_set(&call->err, AGENT_E_UNKNOWN_KEY, NULL, NULL,
                           call->pool);
}

agent_turn_t agent_invalid_key_respond(agent_call_t *call, bool has_begun)
{
    agent_invalid_key_set(call);
    if (!has_begun) {
        (void)!agent_problem_send(call);
        return AGENT_TURN_DONE;
    }
    agent_problem_log(call);
    agent_response_abort(call);
    return AGENT_TURN_DONE;
}

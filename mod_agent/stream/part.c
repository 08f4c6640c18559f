/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that are read and sent in parts; see part.h. */
#include "part.h"

#include "../http/problem.h"
#include "../http/response.h"

agent_turn_t agent_part_failed(agent_call_t *call, bool has_begun,
                               agent_wake_reason_t reason)
{
    if (!has_begun) {
        (void)!agent_problem_send(call);
        return AGENT_TURN_DONE;
    }
    if (agent_error_http(call->err->id) != HTTP_SERVICE_UNAVAILABLE
        || reason == AGENT_REASON_STOPPING) {
        agent_problem_log(call);
        agent_response_abort(call);
        return AGENT_TURN_DONE;
    }
    /* POOL_EXHAUSTED is returned after a wait. */
    return call->err->id == AGENT_E_POOL_EXHAUSTED ? AGENT_TURN_MORE
                                                   : AGENT_TURN_WAIT;
}

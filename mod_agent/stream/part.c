/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that are read and sent in parts; see part.h. */
#include "part.h"

#include "../http/problem.h"
#include "../http/response.h"

/* Limits of attempts: few after time-outs, since the part will probably time
 * out again; more while the database is unreachable, with a heartbeat between
 * two attempts. */
#define MOST_TIME_OUTS 3
#define MOST_OUTAGES   20

void agent_part_count(int *failures, const agent_call_t *call, apr_status_t rv)
{
    if (rv == APR_SUCCESS) {
        *failures = 0;
    }
    else if (call->err->id != AGENT_E_POOL_EXHAUSTED) {
        ++*failures;
    }
}

bool agent_part_has_exhausted_retries(const agent_call_t *call, int failures)
{
    int most = call->err->id == AGENT_E_TIMED_OUT ? MOST_TIME_OUTS
                                                  : MOST_OUTAGES;

    return failures >= most;
}

agent_turn_t agent_part_failed(agent_call_t *call, bool has_begun, int failures,
                               agent_wake_reason_t reason)
{
    if (!has_begun) {
        (void)!agent_problem_send(call);
        return AGENT_TURN_DONE;
    }
    if (agent_error_http(call->err->id) != HTTP_SERVICE_UNAVAILABLE
        || reason == AGENT_REASON_STOPPING
        || agent_part_has_exhausted_retries(call, failures)) {
        agent_problem_log(call);
        agent_response_abort(call);
        return AGENT_TURN_DONE;
    }
    return agent_turn_after_error(call->err);
}

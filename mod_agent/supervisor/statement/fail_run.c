/* SPDX-License-Identifier: Apache-2.0 */
/* The statement fail_run; see fail_run.h. */
#include "fail_run.h"

const agent_fail_run_error_t *agent_fail_run_error(agent_failure_t failure)
{
    static const agent_fail_run_error_t slow = {
        "ReleaseTimeoutError",
        "The run could not be given back to the queue in time."};
    static const agent_fail_run_error_t lost = {
        "ReleaseFailedError",
        "The connection to the database was lost when the run was to be given "
        "back to the queue."};
    static const agent_fail_run_error_t refused = {
        "ReleaseFailedError",
        "The database refused to give the run back to the queue; the server's "
        "error log says why (AGT0313)."};

    if (failure == AGENT_FAILURE_TIMEOUT) {
        return &slow;
    }
    return failure == AGENT_FAILURE_LOST ? &lost : &refused;
}

const agent_statement_t agent_fail_run = {
    .name = "agent_fail_run",
    .params = 6,
    .sql = "select run_id, thread_id, outcome from agent.fail_run($1, $2, $3, "
           "$4, $5, $6)"};

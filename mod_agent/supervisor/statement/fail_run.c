/* SPDX-License-Identifier: Apache-2.0 */
/* The statement fail_run; see fail_run.h. */
#include "fail_run.h"

const agent_statement_t agent_fail_run = {
    .name = "agent_fail_run",
    .params = 6,
    .sql = "select run_id, thread_id, outcome from agent.fail_run($1, $2, $3, "
           "$4, $5, $6)"};

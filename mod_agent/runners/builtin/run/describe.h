/* SPDX-License-Identifier: Apache-2.0 */
/* The call `describe`, which changes nothing. */
#ifndef AGENT_RUNNER_DESCRIBE_H
#define AGENT_RUNNER_DESCRIBE_H

#include "state.h"

/* Sets run->value to the result of the call. APR_EGENERAL: *problem is set. */
apr_status_t runner_describe_answer(runner_run_t *run,
                                    runner_problem_t **problem);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How a run begins: with input, with a command, or where another stopped. */
#ifndef AGENT_RUNNER_BEGIN_H
#define AGENT_RUNNER_BEGIN_H

#include "run.h"

/*
 * Brings the run's state to where its first node can start and sends the
 * checkpoints of that. On APR_EGENERAL nothing was sent.
 */
apr_status_t runner_begin_state(runner_run_t *run, runner_problem_t **problem);

#endif

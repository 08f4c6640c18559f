/* SPDX-License-Identifier: Apache-2.0 */
/* The first state of a run: from an input, a command or a checkpoint. */
#ifndef AGENT_RUNNER_BEGIN_H
#define AGENT_RUNNER_BEGIN_H

#include "state.h"

/*
 * Applies the run's input or command to the thread's state, which must have
 * been read (load.h), and sends the checkpoints of that; afterwards run->next
 * is the first node. APR_EGENERAL: *problem is set and nothing was sent.
 */
apr_status_t runner_begin_state(runner_run_t *run, runner_problem_t **problem);

#endif

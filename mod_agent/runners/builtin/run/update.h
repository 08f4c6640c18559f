/* SPDX-License-Identifier: Apache-2.0 */
/* The call `update`: clients' changes of the state between two runs. */
#ifndef AGENT_RUNNER_UPDATE_H
#define AGENT_RUNNER_UPDATE_H

#include "state.h"

/* Whether supersteps of the call remain to be applied. */
bool runner_update_has_more(const runner_run_t *run);

/*
 * Applies the next superstep of the call to the thread's state, which must have
 * been read (load.h), as if the nodes of its updates had just written their
 * values, and sends the checkpoint; run->next is the node that would follow.
 * APR_EGENERAL: *problem is set and nothing was sent of the superstep.
 */
apr_status_t runner_update_apply(runner_run_t *run, runner_problem_t **problem);

#endif

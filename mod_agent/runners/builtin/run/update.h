/* SPDX-License-Identifier: Apache-2.0 */
/* The call `update`: a client's change of the state between two runs. */
#ifndef AGENT_RUNNER_UPDATE_H
#define AGENT_RUNNER_UPDATE_H

#include "state.h"

/*
 * Applies the values of the call to the thread's state, which must have been
 * read (load.h), as if the node as_node had written them, and sends the
 * checkpoint; run->next is the node that would follow. APR_EGENERAL: *problem
 * is set and nothing was sent.
 */
apr_status_t runner_update_apply(runner_run_t *run, runner_problem_t **problem);

#endif

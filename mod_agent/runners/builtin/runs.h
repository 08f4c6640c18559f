/* SPDX-License-Identifier: Apache-2.0 */
/* The runs that a runner executes, in the order in which they go on. */
#ifndef AGENT_RUNNER_RUNS_H
#define AGENT_RUNNER_RUNS_H

#include "run.h"

typedef APR_RING_HEAD(runner_run_ring_t, runner_run_t) runner_run_ring_t;

/* NULL when no such run is here. */
runner_run_t *runner_runs_find(const runner_run_ring_t *runs,
                               const char *run_id);

/* Bytes that they hold, about. */
size_t runner_runs_measure(const runner_run_ring_t *runs);

/* It has a step to do that takes up to some tenths of a second. */
bool runner_runs_is_heavy(const runner_run_t *run, apr_time_t now);

/* The heavy run that goes on in this turn, which is the last one from now on;
 * NULL for none. */
runner_run_t *runner_runs_choose_heavy(runner_run_ring_t *runs, apr_time_t now);

#endif

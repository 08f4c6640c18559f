/* SPDX-License-Identifier: Apache-2.0 */
/* The runs that a runner executes, in the order of their turns. */
#ifndef AGENT_RUNNER_RUNS_H
#define AGENT_RUNNER_RUNS_H

#include "run.h"

typedef APR_RING_HEAD(runner_run_ring_t, runner_run_t) runner_run_ring_t;

/* NULL when no such run is here. */
runner_run_t *runner_runs_find(const runner_run_ring_t *runs,
                               const char *run_id);

/* Bytes that they hold, an estimate: their trees and the lines held back. */
size_t runner_runs_measure(const runner_run_ring_t *runs);

/* Whether its next step is due and may take some tenths of a second. */
bool runner_runs_is_heavy(const runner_run_t *run, apr_time_t now);

/* Picks the heavy run that may go on in this turn and moves it to the end, so
 * that heavy runs take turns. NULL: none is due. */
runner_run_t *runner_runs_choose_heavy(runner_run_ring_t *runs, apr_time_t now);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the process's runs, in the order of their turns. */
#ifndef AGENT_RUNNER_RUNS_H
#define AGENT_RUNNER_RUNS_H

#include "state.h"

typedef APR_RING_HEAD(runner_run_ring_t, runner_run_t) runner_run_ring_t;

/* The run of that id; NULL when there is none. */
runner_run_t *runner_runs_find(const runner_run_ring_t *runs,
                               const char *run_id);

/* The bytes of memory that a run takes: its state or its start line, whichever
 * is larger, and its pending text. */
size_t runner_runs_weigh(const runner_run_t *run);

/* The bytes of memory that all runs take, with their backlogs. */
size_t runner_runs_weigh_all(const runner_run_ring_t *runs);

/* Moves a run to the end of the list: the others have their turns first. */
void runner_runs_move_back(runner_run_ring_t *runs, runner_run_t *run);

/* Whether the run is due and its step may take some tenths of a second. */
bool runner_runs_is_heavy(const runner_run_t *run, apr_time_t now);

/* Moves the first heavy run to the end of the list and returns it: the one that
 * may continue in this iteration. NULL when there is none. */
runner_run_t *runner_runs_choose_heavy(runner_run_ring_t *runs, apr_time_t now);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the process's runs, in the order of their turns. */
#ifndef AGENT_RUNNER_RUNS_H
#define AGENT_RUNNER_RUNS_H

#include "state.h"

typedef APR_RING_HEAD(runner_run_ring_t, runner_run_t) runner_run_ring_t;

/* The run of that id; NULL when there is none. */
runner_run_t *runner_runs_find(const runner_run_ring_t *runs,
                               const char *run_id);

/* The weight of a run: that of its state or of its start line, if that is more,
 * and its pending text. */
size_t runner_runs_weigh(const runner_run_t *run);

/* Estimated bytes of memory that all runs take: their JSON trees and their
 * backlogs. */
size_t runner_runs_measure(const runner_run_ring_t *runs);

/* Moves a run to the end of the list: the others have their turns first. */
void runner_runs_move_back(runner_run_ring_t *runs, runner_run_t *run);

/* Whether the run is due and its step may take some tenths of a second. */
bool runner_runs_is_heavy(const runner_run_t *run, apr_time_t now);

/* Picks the heavy run that may continue in this turn, NULL for none, and moves
 * it to the end of the list: heavy runs take turns. */
runner_run_t *runner_runs_choose_heavy(runner_run_ring_t *runs, apr_time_t now);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executing a run: the nodes `agent` (calls the model) and `tools` (calls the
 * tools that the model requested), with a checkpoint after each.
 */
#ifndef AGENT_RUNNER_RUN_H
#define AGENT_RUNNER_RUN_H

#include "state.h"

/* Executes the next step if it is due; sets wake_at. */
void runner_run_advance(runner_run_t *run);

/* Stops the run at its next checkpoint, at once if it has none of its own yet
 * or no node executes: it ends with status drained. */
void runner_run_stop(runner_run_t *run);

/* Stops the run at once: saves its partial results as a checkpoint and ends it
 * with status interrupted. Drops the events for which it has not requested
 * credit, except values and error. */
void runner_run_cancel(runner_run_t *run);

#endif

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

/* Whether the run must wait for credit, or for the backlogs of others. */
bool runner_run_is_blocked(const runner_run_t *run);

/* Stops the run at once: saves its partial results as a checkpoint and ends it
 * with status interrupted. Of its output without credit the checkpoints, the
 * events values and error and the end remain. */
void runner_run_cancel(runner_run_t *run);

#endif

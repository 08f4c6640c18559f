/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trials of suspects. A suspect may run for hours, and a run cannot be moved.
 * Where all runners for suspects are taken, runs whose trial is over release
 * theirs: they continue beside others from their last checkpoint, and waiting
 * suspects are tried without more processes.
 */
#ifndef AGENT_SUPERVISOR_RUNNER_TRIAL_H
#define AGENT_SUPERVISOR_RUNNER_TRIAL_H

#include "runner.h"

/* Called each second. Where a pool's runners for suspects are all taken, the
 * runs of up to a quarter of them, whose trials are over, are asked to stop at
 * a checkpoint. */
void agent_runner_tick_trials(const agent_runner_table_t *table,
                              agent_runs_t *runs);

#endif

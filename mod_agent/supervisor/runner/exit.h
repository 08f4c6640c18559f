/* SPDX-License-Identifier: Apache-2.0 */
/* The end of runner processes, and what happens to their runs. */
#ifndef AGENT_SUPERVISOR_RUNNER_EXIT_H
#define AGENT_SUPERVISOR_RUNNER_EXIT_H

#include "io.h"

/* Handles all updates of the spawner: runners started, refused, ended. False
 * when the spawner itself has ended. */
bool agent_runner_take_updates(agent_runner_io_t *io);

/*
 * Requeues the runs of a runner that is no longer read. With
 * AGENT_LOSS_COUNTED, the attempt of a run counts if the runner executed only
 * that one. Several runs are suspects: they are tried again, uncounted, a
 * quarter of them together, until one is alone.
 */
void agent_runner_release_runs(agent_runs_t *runs, agent_runner_t *runner);

/* Kills all runners; their runs are treated as `loss` says at once. */
void agent_runner_kill_all(agent_runner_table_t *table, agent_runs_t *runs,
                           agent_loss_t loss, const char *reason);

#endif

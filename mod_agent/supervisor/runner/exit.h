/* SPDX-License-Identifier: Apache-2.0 */
/* The end of runner processes, and what happens to their runs. */
#ifndef AGENT_SUPERVISOR_RUNNER_EXIT_H
#define AGENT_SUPERVISOR_RUNNER_EXIT_H

#include "io/io.h"

/* Handles all updates of the spawner: runners that were started, were refused
 * or have ended. Returns false when the spawner itself has ended. */
bool agent_runner_exit_take_updates(agent_runner_io_t *io);

/*
 * Takes the runs from a runner that is no longer read, and requeues them as
 * runner->loss says. With AGENT_LOSS_COUNTED, the attempt of a run counts if
 * the runner executed only that one. Several runs are quarantined: they are
 * tried again, uncounted, in groups of a quarter, until one is alone. A run
 * that exceeded its time limit ends as timeout.
 */
void agent_runner_exit_release_runs(agent_runs_t *runs, agent_runner_t *runner);

/* Kills all runners; their runs are treated as `loss` says at once, not when
 * the runners have ended. reason: a constant. */
void agent_runner_exit_kill_all(agent_runner_table_t *table, agent_runs_t *runs,
                                agent_loss_t loss, const char *reason);

#endif

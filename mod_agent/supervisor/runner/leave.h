/* SPDX-License-Identifier: Apache-2.0 */
/* Runners that get no more runs, and end when they have none. */
#ifndef AGENT_SUPERVISOR_RUNNER_LEAVE_H
#define AGENT_SUPERVISOR_RUNNER_LEAVE_H

#include "runner.h"

/* Gives the runner no more runs; it is killed when its runs have ended, or
 * after recycle_grace. agent_runner_recycle() also logs that. */
void agent_runner_leave(agent_runs_t *runs, agent_runner_t *runner);
void agent_runner_recycle(agent_runs_t *runs, agent_runner_t *runner);

/* The same for all runners, without a time limit: agent_drain_t has it. */
void agent_runner_drain_all(agent_runner_table_t *table, agent_runs_t *runs);

#endif

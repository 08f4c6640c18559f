/* SPDX-License-Identifier: Apache-2.0 */
/* Runners that get no more runs, and end when they have none. */
#ifndef AGENT_SUPERVISOR_RUNNER_LEAVE_H
#define AGENT_SUPERVISOR_RUNNER_LEAVE_H

#include "runner.h"

/* Gives the runner no more runs; it is killed when its runs have ended, or
 * after recycle_grace. */
void agent_runner_leave(agent_runs_t *runs, agent_runner_t *runner);

/* The same, but its runs may take as long as they do: it has been replaced. */
void agent_runner_retire(agent_runs_t *runs, agent_runner_t *runner);

/* The same as agent_runner_leave() for one that does not end a run, also when
 * it has retired; logs that. */
void agent_runner_recycle(agent_runs_t *runs, agent_runner_t *runner);

/* The same for all runners, without a time limit: agent_drain_t has it. */
void agent_runner_drain_all(agent_runner_table_t *table, agent_runs_t *runs);

#endif

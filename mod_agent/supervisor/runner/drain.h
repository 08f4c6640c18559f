/* SPDX-License-Identifier: Apache-2.0 */
/* Drains runners: they get no more runs, and end when those that they have are
 * done. */
#ifndef AGENT_SUPERVISOR_RUNNER_DRAIN_H
#define AGENT_SUPERVISOR_RUNNER_DRAIN_H

#include "pool/runner.h"

/* Drains the runner; it is killed when its runs have ended, or after
 * drain_grace. */
void agent_runner_drain(agent_runs_t *runs, agent_runner_t *runner);

/* The same for one whose replacement is ready: its runs may take as long as
 * they do. */
void agent_runner_drain_replaced(agent_runs_t *runs, agent_runner_t *runner);

/* The same as agent_runner_drain() for one that does not end a run, also when
 * it was replaced before; logs that. */
void agent_runner_drain_unresponsive(agent_runs_t *runs,
                                     agent_runner_t *runner);

/* The same for all runners, without a time limit: agent_shutdown_t has it. */
void agent_runner_drain_all(agent_runner_table_t *table, agent_runs_t *runs);

#endif

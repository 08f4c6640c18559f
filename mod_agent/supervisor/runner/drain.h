/* SPDX-License-Identifier: Apache-2.0 */
/* Drains runners: they get no more runs, and end when those that they have are
 * done. */
#ifndef AGENT_SUPERVISOR_RUNNER_DRAIN_H
#define AGENT_SUPERVISOR_RUNNER_DRAIN_H

#include "pool/runner.h"

/* Drains the runner; it is killed when its runs have ended, or after
 * drain_grace. */
void agent_runner_drain(agent_runs_t *runs, agent_runner_t *runner);

/* Drains a runner whose replacement is ready: its runs have no time limit. */
void agent_runner_drain_replaced(agent_runs_t *runs, agent_runner_t *runner);

/* Drains a runner that does not end a run as agent_runner_drain() does, also
 * one that was replaced before, and logs it. */
void agent_runner_drain_unresponsive(agent_runs_t *runs,
                                     agent_runner_t *runner);

/* Drains all runners. agent_shutdown_t has the time limit. */
void agent_runner_drain_all(agent_runner_table_t *table, agent_runs_t *runs);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of runners while they live: readiness, pings, memory. */
#ifndef AGENT_SUPERVISOR_RUNNER_WATCH_H
#define AGENT_SUPERVISOR_RUNNER_WATCH_H

#include "runner.h"

/* Called each second. */
void agent_runner_tick_limits(agent_runner_table_t *table, agent_runs_t *runs);

#endif

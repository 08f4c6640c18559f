/* SPDX-License-Identifier: Apache-2.0 */
/* Time limits of runs, and of the runners that were asked to end them. */
#ifndef AGENT_SUPERVISOR_RUNNER_DEADLINE_H
#define AGENT_SUPERVISOR_RUNNER_DEADLINE_H

#include "runner.h"

/* Called each second. */
void agent_runner_tick_deadlines(const agent_runner_table_t *table,
                                 agent_runs_t *runs);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Time limits of runs, and of the runners that were asked to end them. */
#ifndef AGENT_SUPERVISOR_RUNNER_DEADLINE_H
#define AGENT_SUPERVISOR_RUNNER_DEADLINE_H

#include "pool/runner.h"

/* Called each second: cancels runs whose time limit has passed, and replaces
 * runners that did not end a run within cancel_grace. That time starts again
 * while the runner is stopped or not read, or the run waits for credit (at most
 * AGENT_CREDIT_LAST_REQUESTS times). */
void agent_runner_deadline_tick(const agent_runner_table_t *table,
                                agent_runs_t *runs);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools without work: the runners of a pool that has had no run for its idle
 * time end. Claims then only ask whether it has a ready run, which starts them
 * again (statement/claim.h).
 */
#ifndef AGENT_SUPERVISOR_RUNNER_IDLE_H
#define AGENT_SUPERVISOR_RUNNER_IDLE_H

#include "pool/runner.h"

/* Called each second. */
void agent_runner_idle_tick(const agent_runner_table_t *table,
                            agent_runs_t *runs);

#endif

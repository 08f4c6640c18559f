/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runners that are replaced after a number of runs, with an amount of memory,
 * because they ask for it (`pong`), or for a graph whose import has failed:
 * their replacement is ready before they get no more runs, and a pool replaces
 * one at a time.
 */
#ifndef AGENT_SUPERVISOR_RUNNER_RECYCLE_H
#define AGENT_SUPERVISOR_RUNNER_RECYCLE_H

#include "pool/runner.h"

/* Called each second. Quarantine runners are left out: they end when they are
 * idle. */
void agent_runner_recycle_tick(const agent_runner_table_t *table,
                               agent_runs_t *runs);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of runners while they live: readiness, pings, memory. */
#ifndef AGENT_SUPERVISOR_RUNNER_WATCH_H
#define AGENT_SUPERVISOR_RUNNER_WATCH_H

#include "pool/runner.h"

/* Called each second. Kills a runner that did not become ready, answer a ping
 * or end in time; that takes too much memory; that drains and has no runs
 * left; or that is for quarantined runs and idle. Requeues the runs of a killed
 * one whose exit is not reported. Sends pings; reports lines that were not
 * logged.
 */
void agent_runner_watch_tick(agent_runner_table_t *table, agent_runs_t *runs);

/* Whether its resident memory exceeds the limit in bytes; 0: no limit. */
bool agent_runner_watch_exceeds(const agent_runner_t *runner,
                                apr_int64_t bytes);

#endif

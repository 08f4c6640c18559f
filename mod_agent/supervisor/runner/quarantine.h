/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of quarantine. A quarantined run may take hours, and a run cannot be
 * moved. Where all quarantine runners are taken, runs that have passed release
 * theirs: they continue beside others from their last checkpoint, and waiting
 * quarantined runs are executed without more processes.
 */
#ifndef AGENT_SUPERVISOR_RUNNER_QUARANTINE_H
#define AGENT_SUPERVISOR_RUNNER_QUARANTINE_H

#include "pool/runner.h"

/* Called each second. Where a pool's quarantine runners are all taken, the runs
 * of up to a quarter of them, which have passed, are asked to stop at a
 * checkpoint. */
void agent_runner_quarantine_tick(const agent_runner_table_t *table,
                                  agent_runs_t *runs);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* report_failing_graphs: of pools whose runners do not start. Runs of graphs
 * that no other worker executes are claimed, and end in error (claim.c); those
 * of others wait for the other worker. */
#ifndef AGENT_SUPERVISOR_FAILING_H
#define AGENT_SUPERVISOR_FAILING_H

#include "../runner/pool/runner.h"
#include "worker.h"

typedef struct agent_failing_t {
    const agent_worker_t *worker;
    agent_runner_table_t *runners;
    apr_time_t due_at;
    /* The database has graphs of this worker. */
    bool is_stored;
} agent_failing_t;

extern const agent_operation_t agent_failing_operation;

#endif

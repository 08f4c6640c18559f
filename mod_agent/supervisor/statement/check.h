/* SPDX-License-Identifier: Apache-2.0 */
/* check_leases: which of this worker's runs were cancelled or lost, and which
 * leases the database has that it does not know: those of a claim whose result
 * was lost, and those whose end or release a failover has undone. */
#ifndef AGENT_SUPERVISOR_CHECK_H
#define AGENT_SUPERVISOR_CHECK_H

#include "../runner/run/runs.h"
#include "worker.h"

typedef struct agent_lease_check_t {
    const agent_worker_t *worker;
    const agent_runner_table_t *runners;
    agent_runs_t *runs;
    agent_schedule_t *schedule;
    /* The statement in flight searches leases that are not known. */
    bool is_search;
} agent_lease_check_t;

extern const agent_operation_t agent_check_operation;

#endif

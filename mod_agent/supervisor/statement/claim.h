/* SPDX-License-Identifier: Apache-2.0 */
/* claim_runs: leases runs and assigns them to runners. */
#ifndef AGENT_SUPERVISOR_CLAIM_H
#define AGENT_SUPERVISOR_CLAIM_H

#include "../limit.h"
#include "../runs.h"
#include "worker.h"

typedef struct agent_claim_t {
    agent_context_t *context;
    agent_worker_t *worker;
    agent_runner_table_t *runners;
    agent_runs_t *runs;
    agent_schedule_t *schedule;
    /* The highest ready_seq seen. Rows far below it are only searched each
     * second, since a claim has to skip dead index entries there. */
    apr_int64_t mark;
    apr_time_t full_scan_at;
    agent_limit_t limit;
    /* Rows of each kind that the statement in flight asked for. */
    int ordinary;
    int suspects;
} agent_claim_t;

extern const agent_operation_t agent_claim_operation;

/* The pointers must be set. */
void agent_claim_init(agent_claim_t *claim);

#endif

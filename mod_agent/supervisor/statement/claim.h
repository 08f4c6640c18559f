/* SPDX-License-Identifier: Apache-2.0 */
/* claim_runs: leases runs and assigns them to runners. */
#ifndef AGENT_SUPERVISOR_CLAIM_H
#define AGENT_SUPERVISOR_CLAIM_H

#include "../limit.h"
#include "../runs.h"
#include "worker.h"

/* Between two claims that nothing requested, up to 20 % sooner or later. */
#define AGENT_CLAIM_INTERVAL apr_time_from_sec(1)

typedef struct agent_claim_t {
    agent_context_t *context;
    agent_worker_t *worker;
    agent_graph_table_t *graphs;
    agent_runner_table_t *runners;
    agent_runs_t *runs;
    agent_schedule_t *schedule;
    /* The set of graphs of the statement in flight, or of the last one. Each
     * set has its claims: runs of one set take no slots of runners with
     * another. Rows well below the highest ready_seq that a claim of their
     * graph returned are only searched each second, since a claim has to skip
     * dead index entries there. */
    agent_graph_set_t *set;
    /* Rows of each kind that a statement may ask for. */
    agent_limit_t limit;
    /* Rows of each kind that the statement in flight asked for. */
    int ordinary;
    int suspects;
} agent_claim_t;

extern const agent_operation_t agent_claim_operation;

/* The pointers must be set. */
void agent_claim_init(agent_claim_t *claim);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* claim_runs: leases runs and assigns them to runners. */
#ifndef AGENT_SUPERVISOR_CLAIM_H
#define AGENT_SUPERVISOR_CLAIM_H

#include "database.h"
#include "../limit.h"

typedef struct agent_claim_t {
    /* Array literal of the ids of our graphs. */
    const char *graph_ids;
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

void agent_claim_init(agent_supervisor_t *sv);

#endif

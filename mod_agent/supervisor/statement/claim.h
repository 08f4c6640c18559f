/* SPDX-License-Identifier: Apache-2.0 */
/* Claiming runs and giving them to runners. */
#ifndef AGENT_SUPERVISOR_CLAIM_H
#define AGENT_SUPERVISOR_CLAIM_H

#include "database.h"
#include "../limit.h"

typedef struct agent_claim_t {
    apr_time_t due_at;
    /* The array literal of the graphs we run. */
    const char *graph_ids;
    /* The highest ready_seq seen: what is far below it is not looked at
     * (dead index entries), but for a full scan each second. */
    apr_int64_t mark;
    apr_time_t full_scan_at;
    agent_limit_t limit;
    /* Rows of each kind that the statement in flight asked for. */
    int ordinary;
    int suspects;
} agent_claim_t;

extern const agent_operation_t agent_claim_operation;

void agent_claim_init(agent_supervisor_t *sv);

/* A run became ready, or a place for one free: claim now. */
void agent_claim_wake(agent_supervisor_t *sv);

#endif

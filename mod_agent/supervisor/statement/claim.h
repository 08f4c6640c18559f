/* SPDX-License-Identifier: Apache-2.0 */
/* claim_runs: leases runs and assigns them to runners. */
#ifndef AGENT_SUPERVISOR_CLAIM_H
#define AGENT_SUPERVISOR_CLAIM_H

#include "../base/adaptive_limit.h"
#include "../runner/run/runs.h"
#include "worker.h"

/* Between two claims that nothing requested, up to 20 % sooner or later. */
#define AGENT_CLAIM_INTERVAL apr_time_from_sec(1)

/* Asked for of a pool that has no runners (../runner/idle.h), in place of a
 * number of runs: whether it has a ready one. */
#define AGENT_CLAIM_ONLY_ASK (-1)

/* A statement asks for runs of all pools, of each for those of one set of
 * graphs (runner/pool/pool.h), and for as many as that set has free slots: so
 * runs of a pool take no slots of another one. Rows well below the highest
 * ready_seq that a claim of their graph returned are only searched each second,
 * since a claim has to skip dead index entries there. */
typedef struct agent_claim_t {
    agent_context_t *context;
    agent_worker_t *worker;
    agent_runner_table_t *runners;
    agent_runs_t *runs;
    agent_schedule_t *schedule;
    /* The pools of the statement in flight. */
    struct agent_pool_ring_t asked;
    /* Rows of each kind that a statement may ask for. */
    agent_adaptive_limit_t limit;
    /* Rows of each kind that the statement in flight asked for at most. */
    int ordinary;
    int quarantined;
    /* Rows of each kind that it returned. */
    int got_ordinary;
    int got_quarantined;
} agent_claim_t;

extern const agent_operation_t agent_claim_operation;

/* The pointers must be set. */
void agent_claim_init(agent_claim_t *claim);

/* Functions of claim_choose.c. Returns when the next statement is due. */
apr_time_t agent_claim_due(const agent_claim_t *claim);

/* Chooses the runs that the statement asks for (agent_runner_pool_t.claim). */
void agent_claim_choose(agent_claim_t *claim);

/* Ends a statement; is_done: false if it failed. A pool that got all runs that
 * it asked for, and all pools if the statement returned all rows that it may,
 * are due again when they have a slot. */
void agent_claim_finish(agent_claim_t *claim, bool is_done);

#endif

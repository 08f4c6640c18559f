/* SPDX-License-Identifier: Apache-2.0 */
/* When a claim is due, and which runs it asks for; see claim.h. */
#include "claim.h"

#include "../base/order.h"
#include "../runner/pool/slots.h"

/* ---- when ---- */

/* When all rows of a set are searched next: that of the sets that the pool's
 * runners have. */
static apr_time_t next_full_scan(const agent_runner_pool_t *pool)
{
    apr_time_t next = AGENT_CLOCK_NEVER;

    for (int i = 0; i < pool->graphs.set_count; i++) {
        const agent_graph_set_t *set = &pool->graphs.sets[i];

        if (set->users > 0 && set->count > 0) {
            next = AGENT_MIN(next, set->full_scan_at);
        }
    }
    return next;
}

/* Quarantined runs have separate runners. While the others are full,
 * quarantined runs are claimed when this worker has requeued runs, and each
 * second, but not whenever a run becomes ready. */
static apr_time_t due_for_quarantined(const agent_claim_t *claim)
{
    const agent_schedule_t *schedule = claim->schedule;
    apr_time_t next = AGENT_CLOCK_NEVER;

    for (int i = 0; i < claim->runners->pool_count; i++) {
        const agent_runner_pool_t *pool = &claim->runners->pools[i];

        if (agent_slots_free_quarantine_runners(claim->runners, pool) > 0) {
            next = AGENT_MIN(next, next_full_scan(pool));
        }
    }
    if (next == AGENT_CLOCK_NEVER) {
        return next;
    }
    next = AGENT_MIN(schedule->claim_quarantined_at, next);
    return AGENT_MAX(schedule->claim_at, next);
}

/* Whether runners with these graphs have a free slot, or will have one when
 * they are started, or runs of the graphs end without one. */
static bool has_slot(const agent_runner_pool_t *pool,
                     const agent_graph_set_t *set)
{
    return set->users > 0 && set->count > 0
        && (set == pool->idle_set || set == pool->failing_set
            || agent_slots_free(pool, set) > 0);
}

/* Whether any set of a pool has a free slot, or only one for which a claim is
 * due. */
static bool has_any_slot(const agent_runner_pool_t *pool, bool is_due)
{
    for (int i = 0; i < pool->graphs.set_count; i++) {
        const agent_graph_set_t *set = &pool->graphs.sets[i];

        if ((set->is_due || !is_due) && has_slot(pool, set)) {
            return true;
        }
    }
    return false;
}

static bool any_due_pool_has_slot(const agent_claim_t *claim)
{
    const agent_runner_pool_t *pool;

    AGENT_RING_EACH(pool, &claim->runners->lists.due, agent_runner_pool_t,
                    due_link)
    {
        if (has_any_slot(pool, true)) {
            return true;
        }
    }
    return false;
}

/* The first pool has one, unless its runners are busy or do not start. */
static bool any_pool_has_slot(const agent_claim_t *claim)
{
    for (int i = 0; i < claim->runners->pool_count; i++) {
        if (has_any_slot(&claim->runners->pools[i], false)) {
            return true;
        }
    }
    return false;
}

apr_time_t agent_claim_due(const agent_claim_t *claim)
{
    if (claim->context->mode != AGENT_MODE_RUNNING
        || !agent_worker_is_live(claim->worker) || claim->runners->is_stopped
        || agent_batch_is_full(&claim->runs->batches)) {
        return AGENT_CLOCK_NEVER;
    }
    if (any_due_pool_has_slot(claim)) {
        return claim->context->now;
    }
    return any_pool_has_slot(claim) ? claim->schedule->claim_at
                                    : due_for_quarantined(claim);
}

/* ---- what ---- */

/* A claim is due for each set of graphs that runners have. */
static void begin_round(const agent_claim_t *claim)
{
    claim->schedule->claim_at = AGENT_CLOCK_NEVER;
    claim->schedule->claim_quarantined_at = AGENT_CLOCK_NEVER;
    for (int i = 0; i < claim->runners->pool_count; i++) {
        agent_pool_request_claim(&claim->runners->pools[i]);
    }
}

/* The pool's next set, after the last one in turn, for which a claim is due and
 * there is room; NULL: none. */
static agent_graph_set_t *find_next_set(const agent_claim_t *claim,
                                        const agent_runner_pool_t *pool)
{
    const agent_graph_table_t *graphs = &pool->graphs;
    bool has_quarantine_runner = agent_slots_free_quarantine_runners(
                                     claim->runners, pool)
        > 0;

    for (int i = 1; i <= graphs->set_count; i++) {
        agent_graph_set_t *set =
            &graphs->sets[(pool->claim.last_set + i) % graphs->set_count];

        if (set->is_due && (has_quarantine_runner || has_slot(pool, set))) {
            return set;
        }
    }
    return NULL;
}

/* Asks for at most as many runs as there are free slots. */
static void ask_for_room(agent_claim_t *claim, agent_runner_pool_t *pool,
                         agent_graph_set_t *set)
{
    int ordinary = agent_slots_free(pool, set);
    int quarantined = agent_slots_free_quarantine_runners(claim->runners, pool);

    agent_pool_set_due(pool, set, false);
    pool->claim = (agent_pool_claim_t){
        .set = set, .last_set = (int)(set - pool->graphs.sets)};
    pool->claim.ordinary = AGENT_MIN(ordinary, claim->limit.current);
    pool->claim.quarantined = AGENT_MIN(quarantined, claim->limit.current);
    if (agent_pool_is_idle(pool)) {
        pool->claim.ordinary = AGENT_CLAIM_ONLY_ASK;
        pool->claim.quarantined = AGENT_CLAIM_ONLY_ASK;
    }
    if (set == pool->failing_set) {
        pool->claim.ordinary = claim->limit.current;
        pool->claim.quarantined = claim->limit.current;
    }
    APR_RING_INSERT_TAIL(&claim->asked, pool, agent_runner_pool_t, asked_link);
}

/* Chooses a set of each pool that is due and has room; returns false if there
 * is none. */
static bool choose_sets(agent_claim_t *claim)
{
    agent_runner_pool_t *pool;
    agent_runner_pool_t *next;

    claim->ordinary = claim->got_ordinary = 0;
    claim->quarantined = claim->got_quarantined = 0;
    AGENT_RING_EACH_SAFE(pool, next, &claim->runners->lists.due,
                         agent_runner_pool_t, due_link)
    {
        agent_graph_set_t *set = find_next_set(claim, pool);

        if (set != NULL) {
            ask_for_room(claim, pool, set);
            claim->ordinary += AGENT_MAX(pool->claim.ordinary, 0);
            claim->quarantined += AGENT_MAX(pool->claim.quarantined, 0);
        }
    }
    claim->ordinary = AGENT_MIN(claim->ordinary, claim->limit.current);
    claim->quarantined = AGENT_MIN(claim->quarantined, claim->limit.current);
    return !APR_RING_EMPTY(&claim->asked, agent_runner_pool_t, asked_link);
}

void agent_claim_choose(agent_claim_t *claim)
{
    /* Other sets have their turn too while claims of one are full. */
    if (claim->schedule->claim_at <= claim->context->now
        || !choose_sets(claim)) {
        begin_round(claim);
        choose_sets(claim);
    }
}

/* ---- what comes next ---- */

static bool is_full(int asked, int got)
{
    return asked > 0 && got >= asked;
}

void agent_claim_finish(agent_claim_t *claim, bool is_done)
{
    bool is_limited = is_full(claim->limit.current, claim->got_ordinary)
        || is_full(claim->limit.current, claim->got_quarantined);
    agent_runner_pool_t *pool;
    agent_runner_pool_t *next;

    AGENT_RING_EACH_SAFE(pool, next, &claim->asked, agent_runner_pool_t,
                         asked_link)
    {
        agent_pool_claim_t *asked = &pool->claim;

        if (is_done) {
            /* A wake-up during the statement has made it due already. */
            agent_pool_set_due(
                pool, asked->set,
                asked->set->is_due || is_limited
                    || is_full(asked->ordinary, asked->got_ordinary)
                    || is_full(asked->quarantined, asked->got_quarantined));
        }
        asked->set = NULL;
        AGENT_RING_LEAVE(pool, asked_link);
    }
}

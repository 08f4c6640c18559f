/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of pools and the runners that provide them; see slots.h. */
#include "slots.h"

#include "../../base/order.h"

/* ---- counting ---- */

/* Which runners of a pool are counted. */
typedef enum count_t {
    /* Ordinary ones that are not dead. */
    COUNT_ORDINARY,
    /* Ordinary ones that start or are ready, and are not to be replaced. */
    COUNT_USEFUL,
    /* Ordinary ones that are ready. */
    COUNT_READY,
    /* Quarantine runners that are not dead. */
    COUNT_QUARANTINE,
    /* Quarantine runners that start. */
    COUNT_QUARANTINE_STARTING
} count_t;

/* Whether it was never ready, and its end is not known yet: a pause will follow
 * that. */
static bool has_failed(const agent_runner_t *runner)
{
    return runner->state < AGENT_RUNNER_DEAD && runner->slots == 0;
}

static bool is_counted(const agent_runner_t *runner, count_t what)
{
    switch (what) {
    case COUNT_ORDINARY:
        return runner->state < AGENT_RUNNER_DEAD && runner->max_shared == 0;
    case COUNT_USEFUL:
        return (runner->state <= AGENT_RUNNER_READY || has_failed(runner))
            && runner->max_shared == 0 && !runner->is_replaced;
    case COUNT_READY:
        return runner->state == AGENT_RUNNER_READY && runner->max_shared == 0;
    case COUNT_QUARANTINE:
        return runner->state < AGENT_RUNNER_DEAD && runner->max_shared > 0;
    default:
        return runner->state == AGENT_RUNNER_STARTING && runner->max_shared > 0;
    }
}

static int count_runners(const agent_runner_pool_t *pool, count_t what)
{
    agent_runner_t *runner;
    int count = 0;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        count += is_counted(runner, what);
    }
    return count;
}

int agent_slots_free(const agent_runner_pool_t *pool,
                     const agent_graph_set_t *set)
{
    agent_runner_t *runner;
    int count = 0;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->state == AGENT_RUNNER_READY && runner->max_shared == 0
            && runner->set == set && runner->slots > runner->group.active) {
            count += runner->slots - runner->group.active;
        }
    }
    return count;
}

int agent_slots_used(const agent_runner_pool_t *pool)
{
    agent_runner_t *runner;
    int count = 0;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        count += runner->group.active;
    }
    return count;
}

int agent_slots_quarantine_share(const agent_runner_table_t *table)
{
    int share = AGENT_RUNNERS_QUARANTINE / AGENT_MAX(table->pool_count, 1);

    return AGENT_MAX(share, 1);
}

/* Quarantine runners that can be started now; after a failure one at a time,
 * when the pause is over. */
static int count_startable(const agent_runner_table_t *table,
                           const agent_runner_pool_t *pool)
{
    const agent_runner_pause_t *pause = &pool->quarantined;
    int of_pool = agent_slots_quarantine_share(table)
        - count_runners(pool, COUNT_QUARANTINE);
    int of_kind = AGENT_RUNNERS_QUARANTINE - table->quarantined;
    int of_all = AGENT_RUNNERS_MAX - table->count;
    int count = AGENT_MIN(of_pool, of_kind);

    count = AGENT_MIN(count, of_all);
    if (table->context->mode != AGENT_MODE_RUNNING
        || pause->start_at > table->context->now || count <= 0) {
        return 0;
    }
    if (pause->failures > 0) {
        return count_runners(pool, COUNT_QUARANTINE_STARTING) == 0 ? 1 : 0;
    }
    return count;
}

int agent_slots_free_quarantine_runners(const agent_runner_table_t *table,
                                        const agent_runner_pool_t *pool)
{
    /* If no ordinary runner starts, quarantine runners would not either. */
    return count_runners(pool, COUNT_READY) > 0 ? count_startable(table, pool)
                                                : 0;
}

/* ---- choosing ---- */

/* Whether the runner can execute the graph; until it is ready, whether it may.
 */
static bool may_execute(const agent_runner_t *runner, int graph)
{
    return runner->set == NULL || runner->set->has[graph];
}

agent_runner_t *agent_slots_least_loaded(const agent_runner_pool_t *pool,
                                         int graph)
{
    agent_runner_t *runner;
    agent_runner_t *best = NULL;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->state == AGENT_RUNNER_READY && runner->max_shared == 0
            && may_execute(runner, graph)
            && runner->group.active < runner->slots
            && (best == NULL || runner->group.active < best->group.active)) {
            best = runner;
        }
    }
    return best;
}

agent_runner_t *agent_slots_for_quarantined(agent_runner_table_t *table,
                                            agent_runner_pool_t *pool,
                                            int max_shared, int graph)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->max_shared == max_shared
            && runner->state <= AGENT_RUNNER_READY && may_execute(runner, graph)
            && runner->group.active < max_shared
            && (runner->slots == 0 || runner->group.active < runner->slots)) {
            return runner;
        }
    }
    return count_startable(table, pool) > 0
        ? agent_runner_start(table, pool, max_shared)
        : NULL;
}

/* ---- starting ---- */

/* Whether a draining runner is killed rather than another one: one that did not
 * end a run before one whose runs may complete, then the one that began first.
 */
static bool goes_before(const agent_runner_t *runner,
                        const agent_runner_t *other)
{
    return runner->drains_without_limit != other->drains_without_limit
        ? other->drains_without_limit
        : runner->limit_at < other->limit_at;
}

/* Kills one of the pool's ordinary runners that drain, unless another one was
 * killed and is about to end. At most AgentRunners may be draining, since each
 * takes memory. */
static void make_room(agent_runner_table_t *table,
                      const agent_runner_pool_t *pool)
{
    agent_runner_t *first = NULL;
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->max_shared > 0) {
            continue;
        }
        if (runner->state == AGENT_RUNNER_KILLED) {
            return;
        }
        if (runner->state == AGENT_RUNNER_DRAINING
            && (first == NULL || goes_before(runner, first))) {
            first = runner;
        }
    }
    if (first != NULL) {
        agent_runner_kill(table, first, AGENT_LOSS_UNCOUNTED,
                          "the runner was replaced");
    }
}

static int count_missing(const agent_runner_pool_t *pool)
{
    return agent_pool_is_idle(pool)
        ? 0
        : pool->config->runners - count_runners(pool, COUNT_USEFUL);
}

static apr_time_t replenish_pool(agent_runner_table_t *table,
                                 agent_runner_pool_t *pool, int missing)
{
    const agent_runner_pause_t *pause = &pool->ordinary;
    int room;

    if (table->count >= AGENT_RUNNERS_MAX) {
        return AGENT_CLOCK_NEVER;
    }
    if (pause->start_at > table->context->now) {
        return pause->start_at;
    }
    room = 2 * pool->config->runners - count_runners(pool, COUNT_ORDINARY);
    if (room <= 0) {
        make_room(table, pool);
        return AGENT_CLOCK_NEVER;
    }
    while (missing-- > 0 && room-- > 0
           && pause->start_at <= table->context->now) {
        agent_runner_start(table, pool, 0);
    }
    return table->context->now;
}

apr_time_t agent_slots_replenish(agent_runner_table_t *table)
{
    apr_time_t until = AGENT_CLOCK_NEVER;
    agent_runner_pool_t *pool;
    agent_runner_pool_t *next;

    if (table->context->mode != AGENT_MODE_RUNNING) {
        return until;
    }
    AGENT_RING_EACH_SAFE(pool, next, &table->lists.lacking, agent_runner_pool_t,
                         lacking_link)
    {
        int missing = count_missing(pool);

        if (missing > 0) {
            apr_time_t at = replenish_pool(table, pool, missing);

            until = AGENT_MIN(at, until);
        }
        else {
            AGENT_RING_LEAVE(pool, lacking_link);
        }
    }
    return until;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Pools without work; see idle.h. */
#include "idle.h"

#include "../runs.h"
#include "leave.h"

/* The largest set that an ordinary runner of the pool has; NULL: none is ready,
 * or one executes a run. */
static agent_graph_set_t *find_idle_set(const agent_runner_pool_t *pool)
{
    agent_graph_set_t *best = NULL;
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->group.active > 0) {
            return NULL;
        }
        if (runner->state == AGENT_RUNNER_READY && runner->max_shared == 0
            && (best == NULL || runner->set->count > best->count)) {
            best = runner->set;
        }
    }
    return best;
}

static void stop(const agent_runner_table_t *table, agent_runs_t *runs,
                 agent_runner_pool_t *pool, agent_graph_set_t *set)
{
    agent_runner_t *runner;

    agent_report_write(table->context, AGENT_LOG_INFO, "AGT0356", 0,
                       "the runners of deployment %s end: it has had no run "
                       "for %d s",
                       pool->config->deployment,
                       (int)apr_time_sec(pool->config->idle_time));
    set->users++;
    pool->idle_set = set;
    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->state <= AGENT_RUNNER_READY) {
            agent_runner_leave(runs, runner);
            /* Its exit is expected. */
            runner->loss = AGENT_LOSS_UNCOUNTED;
        }
    }
}

static void tick_pool(const agent_runner_table_t *table, agent_runs_t *runs,
                      agent_runner_pool_t *pool)
{
    apr_time_t now = table->context->now;
    agent_graph_set_t *set = find_idle_set(pool);

    if (set == NULL) {
        pool->idle_since = now;
    }
    /* A claim in flight may return runs. */
    else if (pool->claim.set == NULL
             && now - pool->idle_since >= pool->config->idle_time) {
        stop(table, runs, pool, set);
    }
}

void agent_runner_tick_idle(const agent_runner_table_t *table,
                            agent_runs_t *runs)
{
    for (int i = 0;
         i < table->pool_count && table->context->mode == AGENT_MODE_RUNNING;
         i++) {
        agent_runner_pool_t *pool = &table->pools[i];

        if (pool->config->idle_time > 0 && !agent_pool_is_idle(pool)) {
            tick_pool(table, runs, pool);
        }
    }
}

void agent_pool_wake(agent_runner_pool_t *pool, apr_time_t now)
{
    agent_graphs_release(pool->idle_set);
    pool->idle_set = NULL;
    pool->idle_since = now;
    agent_pool_miss_runner(pool);
}

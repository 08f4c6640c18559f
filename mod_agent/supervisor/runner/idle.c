/* SPDX-License-Identifier: Apache-2.0 */
/* Pools without work; see idle.h. */
#include "idle.h"

#include "drain.h"
#include "run/runs.h"

/* Whether it is an ordinary runner that has reported graphs. */
static bool is_ready(const agent_runner_t *runner)
{
    return runner->state == AGENT_RUNNER_READY && runner->max_shared == 0
        && runner->set->count > 0;
}

/* Whether each of its ordinary runners has reported its graphs: those of one
 * that starts, or is to start after a pause, would be forgotten. */
static bool has_all_reports(const agent_runner_pool_t *pool)
{
    agent_runner_t *runner;
    int count = 0;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        count += runner->state == AGENT_RUNNER_READY && runner->max_shared == 0;
    }
    return count >= pool->config->runners;
}

/* Whether an ordinary runner is ready, and none executes a run. */
static bool has_no_run(const agent_runner_pool_t *pool)
{
    agent_runner_t *runner;
    bool has_ready = false;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->group.active > 0) {
            return false;
        }
        has_ready = has_ready || is_ready(runner);
    }
    return has_ready;
}

/* The graphs that any of its runners has: a run of each starts them again. */
static agent_graph_set_t *take_idle_set(agent_runner_pool_t *pool)
{
    agent_graph_table_t *graphs = &pool->graphs;
    agent_graph_set_t *set;
    agent_runner_t *runner;
    apr_pool_t *scratch;
    bool *has;

    apr_pool_create(&scratch, graphs->context->pool);
    has = apr_pcalloc(scratch, (apr_size_t)graphs->count * sizeof(*has));
    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        for (int i = 0; i < graphs->count && is_ready(runner); i++) {
            has[i] = has[i] || runner->set->has[i];
        }
    }
    set = agent_graphs_take_set(graphs, has);
    apr_pool_destroy(scratch);
    return set;
}

static void stop(const agent_runner_table_t *table, agent_runs_t *runs,
                 agent_runner_pool_t *pool)
{
    agent_runner_t *runner;

    agent_report_write(table->context, AGENT_LOG_INFO, "AGT0356", 0,
                       "the runners of pool %s end: it has had no run "
                       "for %d s",
                       pool->config->name,
                       (int)apr_time_sec(pool->config->idle_time));
    pool->idle_set = take_idle_set(pool);
    agent_pool_request_claim(pool);
    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->state <= AGENT_RUNNER_READY) {
            agent_runner_drain(runs, runner);
            /* Its exit is expected. */
            runner->loss = AGENT_LOSS_UNCOUNTED;
        }
    }
}

static void tick_pool(const agent_runner_table_t *table, agent_runs_t *runs,
                      agent_runner_pool_t *pool)
{
    apr_time_t now = table->context->now;

    if (!has_no_run(pool)) {
        pool->idle_since = now;
    }
    /* A claim in flight may return runs. */
    else if (pool->claim.set == NULL && has_all_reports(pool)
             && now - pool->idle_since >= pool->config->idle_time) {
        stop(table, runs, pool);
    }
}

void agent_runner_idle_tick(const agent_runner_table_t *table,
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Runners that have reached a bound of their pool, or one of their own; see
 * recycle.h. */
#include "recycle.h"

#include "../process/process.h"
#include "drain.h"
#include "watch.h"

/* Whether its replacement may have a graph whose import has failed. */
static bool lacks_graph(const agent_runner_t *runner)
{
    const agent_graph_table_t *graphs = &runner->runner_pool->graphs;

    return agent_graphs_are_due(graphs)
        || agent_graphs_have_recovered(graphs, runner->left_out);
}

/* A runner without a run is kept: its replacement would be no better. */
static bool reaches_bound(const agent_runner_t *runner)
{
    const agent_pool_config_t *config = runner->runner_pool->config;

    return runner->group.used > 0
        && (runner->wants_replacement
            || (config->max_runs > 0 && runner->group.used >= config->max_runs)
            || agent_runner_watch_exceeds(runner, config->recycle_memory));
}

/* Its replacement is started by slots.h. */
static void begin(const agent_runner_table_t *table, agent_runner_t *runner)
{
    agent_report_write(table->context, AGENT_LOG_INFO, "AGT0358", 0,
                       "runner %d of pool %s is replaced after %d runs, "
                       "with %d MB",
                       (int)runner->pid, runner->runner_pool->config->name,
                       runner->group.used,
                       (int)(agent_process_resident(runner->pid) >> 20));
    runner->is_replaced = true;
    runner->lacks_graph = !reaches_bound(runner);
    agent_pool_miss_runner(runner->runner_pool);
}

/* Chooses one if all others are ready, and its replacement has room beside
 * those that still drain (slots.h). */
static void begin_next(const agent_runner_table_t *table,
                       const agent_runner_pool_t *pool, int ready, int all)
{
    agent_runner_t *runner;

    if (ready < pool->config->runners || all >= 2 * pool->config->runners) {
        return;
    }
    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->state == AGENT_RUNNER_READY && runner->max_shared == 0
            && (lacks_graph(runner) || reaches_bound(runner))) {
            begin(table, runner);
            return;
        }
    }
}

static void tick_pool(const agent_runner_table_t *table, agent_runs_t *runs,
                      const agent_runner_pool_t *pool)
{
    agent_runner_t *runner;
    agent_runner_t *replaced = NULL;
    int ready = 0;
    int all = 0;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        bool is_ready = runner->state == AGENT_RUNNER_READY;

        if (runner->max_shared > 0 || runner->state == AGENT_RUNNER_DEAD) {
            continue;
        }
        all++;
        if (is_ready && runner->is_replaced) {
            replaced = runner;
        }
        else if (is_ready) {
            ready++;
        }
    }
    if (replaced == NULL) {
        begin_next(table, pool, ready, all);
    }
    else if (ready >= pool->config->runners) {
        agent_runner_drain_replaced(runs, replaced);
    }
}

void agent_runner_recycle_tick(const agent_runner_table_t *table,
                               agent_runs_t *runs)
{
    for (int i = 0;
         i < table->pool_count && table->context->mode == AGENT_MODE_RUNNING;
         i++) {
        const agent_runner_pool_t *pool = &table->pools[i];

        if (!agent_pool_is_idle(pool)) {
            tick_pool(table, runs, pool);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of runners; see pool.h. */
#include "pool.h"

#include <string.h>

#include <apr_strings.h>

#include "../../../core/backoff.h"
#include "../../../core/deployment.h"

/* Pauses after runners that failed to start. */
#define FIRST_PAUSE apr_time_from_msec(100)
#define MAX_PAUSE   apr_time_from_sec(5)

void agent_pool_init(agent_runner_pool_t *pool, agent_pool_lists_t *lists)
{
    pool->lists = lists;
    APR_RING_ELEM_INIT(pool, due_link);
    APR_RING_ELEM_INIT(pool, lacking_link);
    APR_RING_ELEM_INIT(pool, reporting_link);
    APR_RING_ELEM_INIT(pool, asked_link);
}

agent_runner_pool_t *agent_pool_make_all(int *count, agent_pool_lists_t *lists,
                                         agent_context_t *context)
{
    agent_runner_pool_t *pools;

    APR_RING_INIT(&lists->due, agent_runner_pool_t, due_link);
    APR_RING_INIT(&lists->lacking, agent_runner_pool_t, lacking_link);
    APR_RING_INIT(&lists->reporting, agent_runner_pool_t, reporting_link);
    *count = context->config->pool_count;
    pools = apr_pcalloc(context->pool, (apr_size_t)*count * sizeof(*pools));
    for (int i = 0; i < *count; i++) {
        agent_pool_init(&pools[i], lists);
        pools[i].config = &context->config->pools[i];
        pools[i].number = i;
        pools[i].idle_since = context->now;
        agent_graphs_init(&pools[i].graphs, context, pools[i].config);
        agent_pool_miss_runner(&pools[i]);
    }
    return pools;
}

/* The pool is in the list while a claim is due for any of its sets. */
static void list_due(agent_runner_pool_t *pool)
{
    for (int i = 0; i < pool->graphs.set_count; i++) {
        if (pool->graphs.sets[i].is_due) {
            AGENT_RING_ENTER(&pool->lists->due, pool, agent_runner_pool_t,
                             due_link);
            return;
        }
    }
    AGENT_RING_LEAVE(pool, due_link);
}

void agent_pool_set_due(agent_runner_pool_t *pool, agent_graph_set_t *set,
                        bool is_due)
{
    set->is_due = is_due;
    list_due(pool);
}

void agent_pool_request_claim(agent_runner_pool_t *pool)
{
    for (int i = 0; i < pool->graphs.set_count; i++) {
        agent_graph_set_t *set = &pool->graphs.sets[i];

        set->is_due = set->users > 0 && set->count > 0;
    }
    list_due(pool);
}

void agent_pool_note_reports(agent_runner_pool_t *pool)
{
    if (agent_graphs_have_reports(&pool->graphs)) {
        AGENT_RING_ENTER(&pool->lists->reporting, pool, agent_runner_pool_t,
                         reporting_link);
    }
}

void agent_pools_claim_for(agent_runner_pool_t *pools, int count,
                           const char *deployment_id)
{
    apr_size_t length = strnlen(deployment_id, AGENT_UUID_SIZE - 1);

    for (int i = 0; i < count; i++) {
        if (length < AGENT_UUID_SIZE - 1
            || strncmp(pools[i].graphs.deployment_id, deployment_id, length)
                == 0) {
            agent_pool_request_claim(&pools[i]);
        }
    }
}

const char *agent_pool_account(const agent_runner_pool_t *pool)
{
    const char *id = agent_deployment_account(pool->config->deployment);

    return id != NULL ? id : AGENT_ACCOUNT_ID;
}

/* A pool of the deployment, if its account has a limit; else NULL. */
static const agent_runner_pool_t *find_limited(const agent_runner_pool_t *pools,
                                               int count,
                                               const char *deployment_id)
{
    for (int i = 0; i < count; i++) {
        if (pools[i].config->has_limit
            && strcmp(pools[i].graphs.deployment_id, deployment_id) == 0) {
            return &pools[i];
        }
    }
    return NULL;
}

void agent_pools_claim_after(agent_runner_pool_t *pools, int count,
                             const char *deployment_id, bool has_next)
{
    const agent_runner_pool_t *limited = find_limited(pools, count,
                                                      deployment_id);

    if (limited == NULL && has_next) {
        agent_pools_claim_for(pools, count, deployment_id);
    }
    for (int i = 0; limited != NULL && i < count; i++) {
        if (strcmp(agent_pool_account(&pools[i]), agent_pool_account(limited))
            == 0) {
            agent_pool_request_claim(&pools[i]);
        }
    }
}

static agent_runner_pause_t *find_pause(agent_runner_pool_t *pool,
                                        int max_shared)
{
    return max_shared > 0 ? &pool->quarantined : &pool->ordinary;
}

void agent_pool_count_failure(agent_runner_pool_t *pool,
                              agent_context_t *context, int max_shared)
{
    agent_runner_pause_t *pause = find_pause(pool, max_shared);

    pause->start_at = context->now
        + agent_backoff_delay(pause->failures++, FIRST_PAUSE, MAX_PAUSE);
    if (pause->failures > 3) {
        agent_report_repeat_of(context, &pool->report, AGENT_LOG_ERR, "AGT0337",
                               0,
                               "%d runners in a row ended right after their "
                               "start (pool %s)",
                               pause->failures, pool->config->name);
    }
}

void agent_pool_count_success(agent_runner_pool_t *pool, int max_shared)
{
    find_pause(pool, max_shared)->failures = 0;
}

void agent_pool_count_failed_start(agent_runner_pool_t *pool, const char *how)
{
    pool->failed_starts++;
    apr_cpystrn(pool->start_failure, how, sizeof(pool->start_failure));
}

void agent_pool_reset_failed_starts(agent_runner_pool_t *pool)
{
    pool->failed_starts = 0;
    agent_graphs_release(pool->failing_set);
    pool->failing_set = NULL;
}

void agent_pool_wake(agent_runner_pool_t *pool, apr_time_t now)
{
    agent_graphs_release(pool->idle_set);
    pool->idle_set = NULL;
    pool->idle_since = now;
    agent_pool_miss_runner(pool);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* expire_threads, maintain_partitions, sweep_state, sweep_events,
 * sweep_copies, sweep_calls and sweep_store; see expire.h. */
#include "expire.h"

#include <apr_strings.h>

#include "sweep.h"

#define PARTITIONS_INTERVAL apr_time_from_sec(6 * 3600)
#define PARTITIONS_RETRY    apr_time_from_sec(60)
/* Events are kept for ever when no retention is configured. */
#define FOR_EVER_DAYS 36500

/* ---- threads ---- */

static void receive_threads(void *part, const agent_db_result_t *result)
{
    agent_sweep_t *sweep = part;
    apr_time_t now = sweep->worker->context->now;

    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_notify_relay(sweep->notify, agent_db_value(result, row, 0));
    }
    /* The connection is left to others for as long as this took. */
    if (agent_db_rows(result) > 0) {
        sweep->due_at = now + (now - sweep->sent_at);
    }
}

/* ---- partitions ---- */

const char *agent_expire_retention(const agent_context_t *context,
                                   apr_pool_t *pool)
{
    int days = context->config->event_retention_days;

    return apr_psprintf(pool, "%d days", days > 0 ? days : FOR_EVER_DAYS);
}

static const char *const *make_retention(const agent_sweep_t *sweep,
                                         apr_pool_t *pool)
{
    const char **params = apr_palloc(pool, sizeof(*params));

    params[0] = agent_expire_retention(sweep->worker->context, pool);
    return params;
}

static void receive_partitions(void *part, const agent_db_result_t *result)
{
    /* The number of changed partitions is not used. */
}

static void fail_partitions(void *part, agent_failure_t failure)
{
    agent_sweep_t *sweep = part;

    sweep->due_at = agent_database_after(sweep->worker->context,
                                         PARTITIONS_RETRY);
}

static const agent_sweep_kind_t kinds[] = {
    {AGENT_SWEEP_OTHER("maintain_partitions", receive_partitions,
                       fail_partitions),
     .statement.sql = "select agent.maintain_partitions($1)",
     .statement.params = 1, .make_params = make_retention,
     .interval = PARTITIONS_INTERVAL},
    {AGENT_SWEEP_OTHER("expire_threads", receive_threads, agent_sweep_retry),
     .statement.sql = "select * from agent.expire_threads()"},
    {AGENT_SWEEP("sweep_state"), .statement.sql = "select agent.sweep_state()"},
    {AGENT_SWEEP("sweep_events"),
     .statement.sql = "select agent.sweep_events()"},
    {AGENT_SWEEP("sweep_copies"),
     .statement.sql = "select agent.sweep_copies()"},
    {AGENT_SWEEP("sweep_calls"), .statement.sql = "select agent.sweep_calls()"},
    {AGENT_SWEEP("sweep_store"),
     .statement.sql = "select agent.sweep_store()"}};

void agent_expire_add(agent_database_t *database, const agent_worker_t *worker,
                      agent_notify_t *notify)
{
    agent_sweep_add(database, worker, notify, kinds,
                    sizeof(kinds) / sizeof(kinds[0]));
}

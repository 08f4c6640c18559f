/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of statements with dedicated batches; see save_limit.h. */
#include "save_limit.h"

#include "../base/order.h"
#include "../lease/batch_send.h"

apr_interval_time_t agent_save_limit_get(const agent_context_t *context,
                                         bool is_long)
{
    apr_interval_time_t longest = agent_context_longest_statement(context);

    return is_long ? longest : AGENT_MIN(longest, AGENT_BATCH_SIZE_TIMEOUT);
}

bool agent_save_limit_is_long(const agent_save_t *save)
{
    return save->long_limit_on > 0
        && save->long_limit_on == save->output->connection;
}

apr_time_t agent_save_limit_due(const agent_save_t *save, bool has_limit)
{
    const agent_batch_queue_t *queue = &save->runs->batches;
    const agent_batch_t *batch = agent_worker_is_live(save->worker)
        ? agent_batch_send_next_dedicated(queue)
        : NULL;
    const agent_lease_t *lease;
    bool is_long;

    if (batch == NULL) {
        return AGENT_CLOCK_NEVER;
    }
    lease = agent_save_find_lease(save->runs, batch);
    is_long = lease == NULL || lease->batch_size.needs_long_limit;
    return (is_long == agent_save_limit_is_long(save)) == has_limit
        ? agent_batch_due(batch, queue->context->now)
        : AGENT_CLOCK_NEVER;
}

static apr_time_t due(void *part)
{
    const agent_save_t *save = part;
    apr_time_t at = agent_save_limit_due(save, false);

    return AGENT_MAX(at, save->limit_retry_at);
}

/* Settings of the session. */
static const agent_statement_t set_limits = {
    .params = 2,
    .sql = "select pg_catalog.set_config('statement_timeout', $1, false), "
           "pg_catalog.set_config('lock_timeout', $2, false)"};

static apr_status_t send_limits(void *part, agent_database_t *database,
                                agent_error_t **err)
{
    const agent_save_t *save = part;
    apr_interval_time_t limit = agent_save_limit_get(
        database->context, !agent_save_limit_is_long(save));
    const char *params[] = {agent_session_limit(limit, database->scratch),
                            agent_session_limit(limit / 2, database->scratch)};

    return agent_db_send(database->db, &set_limits, params, err,
                         database->scratch);
}

static void receive(void *part, const agent_db_result_t *result)
{
    agent_save_t *save = part;

    save->long_limit_on = agent_save_limit_is_long(save)
        ? 0
        : save->output->connection;
}

static void fail(void *part, agent_failure_t failure)
{
    agent_save_t *save = part;

    save->limit_retry_at = agent_database_retry_at(save->output->context,
                                                   failure);
}

const agent_operation_t agent_save_limit_operation = {
    "set_config", due, send_limits, receive, fail};

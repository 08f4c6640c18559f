/* SPDX-License-Identifier: Apache-2.0 */
/* set_limits; see set_limits.h. */
#include "set_limits.h"

#include "../../db/limits.h"

#define RETRY apr_time_from_sec(10)

static apr_time_t due(void *part)
{
    const agent_set_limits_t *limits = part;

    return limits->database->context->config->limits.text == NULL
            || limits->connection == limits->database->connection
        ? AGENT_CLOCK_NEVER
        : limits->retry_at;
}

static apr_status_t send_limits(void *part, agent_database_t *database,
                                agent_error_t **err)
{
    const char *params[AGENT_DB_LIMITS_PARAMS];

    agent_db_limits_fill(params, &database->context->config->limits,
                         database->scratch);
    return agent_db_send(database->db, &agent_db_set_limits, params, err,
                         database->scratch);
}

static void receive(void *part, const agent_db_result_t *result)
{
    agent_set_limits_t *limits = part;
    const agent_database_t *database = limits->database;
    const agent_context_t *context = database->context;

    if (agent_db_limits_report(result, &context->config->log,
                               database->scratch)) {
        limits->connection = database->connection;
    }
    else {
        limits->retry_at = agent_database_after(context, RETRY);
    }
}

/* Claims continue with the limits that are stored. */
static void fail(void *part, agent_failure_t failure)
{
    agent_set_limits_t *limits = part;
    const agent_context_t *context = limits->database->context;

    limits->retry_at = failure == AGENT_FAILURE_LOST
        ? context->now
        : agent_database_after(context, RETRY);
}

const agent_operation_t agent_set_limits_operation = {
    "set_limits", due, send_limits, receive, fail, .is_urgent = true};

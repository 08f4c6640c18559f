/* SPDX-License-Identifier: Apache-2.0 */
/* Statements that are repeated while they find something; see sweep.h. */
#include "sweep.h"

#include <string.h>

#define LONG_PAUSE apr_time_from_sec(600)

void agent_sweep_add(agent_database_t *database, const agent_worker_t *worker,
                     agent_notify_t *notify, const agent_sweep_kind_t *kinds,
                     int count)
{
    for (int i = 0; i < count; i++) {
        agent_sweep_t *sweep = apr_palloc(database->context->pool,
                                          sizeof(*sweep));

        *sweep = (agent_sweep_t){
            .kind = &kinds[i], .worker = worker, .notify = notify};
        agent_database_add(database, &kinds[i].operation, sweep);
    }
}

apr_time_t agent_sweep_due(void *part)
{
    const agent_sweep_t *sweep = part;

    return agent_worker_due(sweep->worker, sweep->due_at);
}

static apr_interval_time_t interval_of(const agent_sweep_kind_t *kind)
{
    return kind->interval > 0 ? kind->interval : AGENT_SWEEP_INTERVAL;
}

apr_status_t agent_sweep_send(void *part, agent_database_t *database,
                              agent_error_t **err)
{
    agent_sweep_t *sweep = part;
    const agent_sweep_kind_t *kind = sweep->kind;
    const char *const *params = kind->make_params != NULL
        ? kind->make_params(sweep, database->scratch)
        : NULL;

    sweep->due_at = agent_database_after(database->context, interval_of(kind));
    sweep->sent_at = database->context->now;
    return agent_db_send(database->db, &kind->statement, params, err,
                         database->scratch);
}

static void set_due(agent_sweep_t *sweep, apr_interval_time_t pause)
{
    sweep->due_at = agent_database_after(sweep->worker->context, pause);
}

void agent_sweep_receive(void *part, const agent_db_result_t *result)
{
    if (strcmp(agent_db_value(result, 0, 0), "0") != 0) {
        agent_sweep_repeat(part);
    }
}

void agent_sweep_fail(void *part, agent_failure_t failure)
{
    agent_sweep_t *sweep = part;

    set_due(sweep,
            failure == AGENT_FAILURE_TIMEOUT || failure == AGENT_FAILURE_CANCEL
                ? LONG_PAUSE
                : interval_of(sweep->kind));
}

void agent_sweep_retry(void *part, agent_failure_t failure)
{
    agent_sweep_t *sweep = part;

    set_due(sweep, interval_of(sweep->kind));
}

void agent_sweep_repeat(agent_sweep_t *sweep)
{
    set_due(sweep, AGENT_SWEEP_PAUSE);
}

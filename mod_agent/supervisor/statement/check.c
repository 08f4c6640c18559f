/* SPDX-License-Identifier: Apache-2.0 */
/* check_leases; see check.h. */
#include "check.h"

#include <string.h>

#include "../instance.h"
#include "../run_end.h"

#define INTERVAL apr_time_from_sec(1)

static apr_time_t due_check(agent_supervisor_t *sv)
{
    return agent_worker_is_live(&sv->worker) && sv->leases.held > 0
        ? sv->schedule.check_at
        : AGENT_CLOCK_NEVER;
}

static const agent_statement_t check_leases = {
    .name = "agent_check_leases",
    .params = 2,
    .is_repeatable = true,
    .sql = "select run_id, outcome from agent.check_leases($1::bigint, "
           "$2::json)"};

static apr_status_t send_check(agent_supervisor_t *sv,
                               agent_database_t *database, agent_error_t **err)
{
    apr_pool_t *pool = database->scratch;
    const char *params[2];
    agent_buffer_t items;
    agent_runner_t *runner;
    agent_lease_t *lease;

    agent_buffer_init(&items, pool);
    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        AGENT_RING_EACH(lease, &runner->group.leases, agent_lease_t, link)
        {
            if (lease->state == AGENT_LEASE_HELD) {
                agent_lease_print(&items, &lease->key, lease->account_id);
            }
        }
    }
    if (agent_buffer_length(&items) == 0) {
        agent_buffer_append(&items, "[", 1);
    }
    agent_buffer_append(&items, "]", 2);
    params[0] = sv->worker.id;
    params[1] = agent_buffer_text(&items);
    sv->schedule.check_at = agent_database_after(sv->context, INTERVAL);
    return agent_db_send(database->db, &check_leases, params, err, pool);
}

/* A row names the run only; its lease is the one that is HELD. */
static agent_lease_t *find_held(agent_supervisor_t *sv, const char *run_id)
{
    agent_runner_t *runner;
    agent_lease_t *lease;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        AGENT_RING_EACH(lease, &runner->group.leases, agent_lease_t, link)
        {
            if (lease->state == AGENT_LEASE_HELD
                && memcmp(lease->key.run_id, run_id, 36) == 0) {
                return lease;
            }
        }
    }
    return NULL;
}

static void receive_check(agent_supervisor_t *sv,
                          const agent_db_result_t *result)
{
    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_lease_t *lease = find_held(sv, agent_db_value(result, row, 0));

        if (lease == NULL) {
            continue;
        }
        if (strcmp(agent_db_value(result, row, 1), "cancel") != 0) {
            agent_run_end_lose(sv, lease);
        }
        else if (lease->cause == AGENT_CAUSE_NONE) {
            agent_run_end_cancel(sv, lease, AGENT_CAUSE_REQUEST);
        }
    }
}

static void fail_check(agent_supervisor_t *sv, agent_failure_t failure)
{
    sv->schedule.check_at = agent_database_retry_at(sv->context, failure);
}

const agent_operation_t agent_check_operation = {
    "check_leases", due_check, send_check, receive_check, fail_check};

/* SPDX-License-Identifier: Apache-2.0 */
/* check_leases; see check.h. */
#include "check.h"

#include <string.h>

#include "../runner/run/run_end.h"

#define INTERVAL apr_time_from_sec(1)

enum { COL_RUN, COL_EPOCH, COL_OUTCOME };

static apr_time_t due_check(void *part)
{
    const agent_lease_check_t *check = part;

    return agent_worker_is_live(check->worker) && check->runs->leases.held > 0
        ? check->schedule->check_at
        : AGENT_CLOCK_NEVER;
}

static const agent_statement_t check_leases = {
    .name = "agent_check_leases",
    .params = 2,
    .sql = "select run_id, epoch, outcome from agent.check_leases($1, $2)"};

static apr_status_t send_check(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    agent_lease_check_t *check = part;
    apr_pool_t *pool = database->scratch;
    const char *params[2];
    agent_buffer_t items;
    agent_runner_t *runner;
    agent_lease_t *lease;

    agent_buffer_init(&items, pool);
    AGENT_RING_EACH(runner, &check->runners->all, agent_runner_t, link)
    {
        AGENT_RING_EACH(lease, &runner->group.leases, agent_lease_t, link)
        {
            if (lease->state == AGENT_LEASE_HELD) {
                agent_lease_print(&items, &lease->key, lease->deployment_id);
            }
        }
    }
    if (agent_buffer_length(&items) == 0) {
        agent_buffer_append(&items, "[", 1);
    }
    agent_buffer_append(&items, "]", 2);
    params[0] = check->worker->id;
    params[1] = agent_buffer_text(&items);
    check->schedule->check_at = agent_database_after(database->context,
                                                     INTERVAL);
    return agent_db_send(database->db, &check_leases, params, err, pool);
}

/* The lease that a row names, if it is still HELD and has a runner. */
static agent_lease_t *find_held(const agent_lease_check_t *check,
                                const agent_db_result_t *result, int row)
{
    agent_lease_key_t key = {
        .epoch = (apr_int32_t)agent_db_integer(result, row, COL_EPOCH, 0)};
    agent_lease_t *lease;

    memcpy(key.run_id, agent_db_value(result, row, COL_RUN),
           sizeof(key.run_id));
    lease = agent_lease_find(&check->runs->leases, &key);
    return lease != NULL && lease->state == AGENT_LEASE_HELD
            && lease->group != NULL
        ? lease
        : NULL;
}

static void receive_check(void *part, const agent_db_result_t *result)
{
    agent_lease_check_t *check = part;

    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_lease_t *lease = find_held(check, result, row);

        if (lease == NULL) {
            continue;
        }
        if (strcmp(agent_db_value(result, row, COL_OUTCOME), "cancel") != 0) {
            agent_run_end_lose(check->runs, lease);
        }
        else if (lease->cause == AGENT_CAUSE_NONE) {
            agent_run_end_cancel(check->runs, lease, AGENT_CAUSE_REQUEST);
        }
    }
}

static void fail_check(void *part, agent_failure_t failure)
{
    agent_lease_check_t *check = part;

    check->schedule->check_at = agent_database_retry_at(check->runs->context,
                                                        failure);
}

const agent_operation_t agent_check_operation = {
    "check_leases", due_check, send_check, receive_check, fail_check};

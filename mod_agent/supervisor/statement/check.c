/* SPDX-License-Identifier: Apache-2.0 */
/* check_leases; see check.h. */
#include "check.h"

#include <string.h>

#include "../base/order.h"
#include "../runner/run/run_end.h"

#define INTERVAL apr_time_from_sec(1)

enum { COL_DEPLOYMENT, COL_RUN, COL_EPOCH, COL_OUTCOME };

static apr_time_t due_check(void *part)
{
    const agent_lease_check_t *check = part;
    const agent_schedule_t *schedule = check->schedule;

    if (!agent_worker_is_live(check->worker)) {
        return AGENT_CLOCK_NEVER;
    }
    return check->runs->leases.held > 0
        ? AGENT_MIN(schedule->check_at, schedule->search_at)
        : schedule->search_at;
}

static const agent_statement_t check_leases = {
    .name = "agent_check_leases",
    .params = 3,
    .sql = "select deployment_id, run_id, epoch, outcome "
           "from agent.check_leases($1, $2, $3)"};

/* Leases that runners execute, or will. */
static bool is_held(const agent_lease_t *lease)
{
    return lease->state == AGENT_LEASE_HELD && lease->group != NULL;
}

static const char *end_array(agent_buffer_t *items)
{
    if (agent_buffer_length(items) == 0) {
        agent_buffer_append(items, "[", 1);
    }
    agent_buffer_append(items, "]", 2);
    return agent_buffer_text(items);
}

static const char *print_held(const agent_lease_check_t *check,
                              apr_pool_t *pool)
{
    agent_buffer_t items;
    agent_runner_t *runner;
    agent_lease_t *lease;

    agent_buffer_init(&items, pool);
    AGENT_RING_EACH(runner, &check->runners->all, agent_runner_t, link)
    {
        AGENT_RING_EACH(lease, &runner->group.leases, agent_lease_t, link)
        {
            if (is_held(lease)) {
                agent_lease_print(&items, &lease->key, lease->deployment_id);
            }
        }
    }
    return end_array(&items);
}

/* The other leases that the database may have: their end is not committed, or
 * their release. */
static const char *print_others(const agent_runs_t *runs, apr_pool_t *pool)
{
    agent_buffer_t items;
    apr_hash_index_t *at;
    const agent_release_t *release;

    agent_buffer_init(&items, pool);
    for (at = apr_hash_first(pool, runs->leases.by_key); at != NULL;
         at = apr_hash_next(at)) {
        const agent_lease_t *lease = apr_hash_this_val(at);

        if (lease->state != AGENT_LEASE_GONE && !is_held(lease)) {
            agent_lease_print(&items, &lease->key, lease->deployment_id);
        }
    }
    AGENT_RING_EACH(release, &runs->releases.waiting, agent_release_t, link)
    {
        agent_lease_print(&items, &release->key, release->deployment_id);
    }
    return end_array(&items);
}

/* After a lost claim once more when it has ended in the server. */
static apr_time_t next_search(const agent_schedule_t *schedule)
{
    const agent_context_t *context = schedule->context;
    apr_time_t next = agent_database_after(
        context, agent_context_longest_statement(context));

    return schedule->lost_claim_until > context->now
        ? AGENT_MIN(schedule->lost_claim_until, next)
        : next;
}

static apr_status_t send_check(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    agent_lease_check_t *check = part;
    agent_schedule_t *schedule = check->schedule;
    apr_pool_t *pool = database->scratch;
    const char *params[3];

    check->is_search = schedule->search_at <= database->context->now;
    params[0] = check->worker->id;
    params[1] = print_held(check, pool);
    params[2] = check->is_search ? print_others(check->runs, pool) : NULL;
    schedule->check_at = agent_database_after(database->context, INTERVAL);
    if (check->is_search) {
        schedule->search_at = next_search(schedule);
    }
    return agent_db_send(database->db, &check_leases, params, err, pool);
}

static agent_lease_key_t read_key(const agent_db_result_t *result, int row)
{
    agent_lease_key_t key = {
        .epoch = (apr_int32_t)agent_db_integer(result, row, COL_EPOCH, 0)};

    memcpy(key.run_id, agent_db_value(result, row, COL_RUN),
           sizeof(key.run_id));
    return key;
}

static void take_cancel(const agent_lease_check_t *check,
                        const agent_lease_key_t *key, bool is_lost)
{
    agent_lease_t *lease = agent_lease_find(&check->runs->leases, key);

    if (lease == NULL || !is_held(lease)) {
        return;
    }
    if (is_lost) {
        agent_run_end_lose(check->runs, lease);
    }
    else if (lease->cause == AGENT_CAUSE_NONE) {
        agent_run_end_cancel(check->runs, lease, AGENT_CAUSE_REQUEST);
    }
}

/*
 * No claim is in flight: it has the same connection. The server may still
 * execute the claim of a connection that was lost; the next search finds its
 * leases.
 */
static void take_unknown(const agent_lease_check_t *check,
                         const agent_lease_key_t *key,
                         const char *deployment_id)
{
    if (!agent_worker_is_live(check->worker)) {
        /* Its end in the database, which is under way, gives back all. */
        return;
    }
    agent_report_write(check->runs->context, AGENT_LOG_WARNING, "AGT0379", 0,
                       "run %.36s is leased to this worker, which does not "
                       "know it: it is given back",
                       key->run_id);
    agent_run_end_release_unknown(check->runs, key, deployment_id);
    /* There may be more than one statement returns. */
    agent_schedule_search(check->schedule);
}

static void receive_check(void *part, const agent_db_result_t *result)
{
    const agent_lease_check_t *check = part;

    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_lease_key_t key = read_key(result, row);
        const char *outcome = agent_db_value(result, row, COL_OUTCOME);

        if (strcmp(outcome, "unknown") == 0) {
            take_unknown(check, &key,
                         agent_db_value(result, row, COL_DEPLOYMENT));
        }
        else {
            take_cancel(check, &key, strcmp(outcome, "cancel") != 0);
        }
    }
}

static void fail_check(void *part, agent_failure_t failure)
{
    agent_lease_check_t *check = part;
    apr_time_t retry_at = agent_database_retry_at(check->runs->context,
                                                  failure);

    check->schedule->check_at = retry_at;
    if (check->is_search) {
        check->schedule->search_at = retry_at;
    }
}

const agent_operation_t agent_check_operation = {
    "check_leases", due_check, send_check, receive_check, fail_check};

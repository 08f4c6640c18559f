/* SPDX-License-Identifier: Apache-2.0 */
/* claim_runs; see claim.h. */
#include "claim.h"

#include <string.h>

#include <apr_strings.h>

#include "../run_end.h"
#include "start.h"

#define INTERVAL  apr_time_from_sec(1)
#define MAX_CLAIM 50
/* For transactions that take a number early and commit late. */
#define SLACK 1000

/* Columns of the statement. */
enum {
    COL_ACCOUNT,
    COL_RUN,
    COL_THREAD,
    COL_EPOCH,
    COL_ATTEMPT,
    COL_GRAPH,
    COL_READY_SEQ,
    COL_LAST_SEQ,
    COL_DEADLINE,
    COL_MAX_SHARED,
    COL_TIMES_CLEARED,
    COL_START_BYTES,
    COL_START
};

void agent_claim_init(agent_claim_t *claim)
{
    agent_limit_init(&claim->limit, MAX_CLAIM);
}

/* Suspects have runners of their own. They are claimed each second, not
 * whenever some other run becomes ready. */
static apr_time_t due_for_suspects(const agent_claim_t *claim)
{
    apr_time_t claim_at = claim->schedule->claim_at;

    if (agent_runner_free_suspect_runners(claim->runners) == 0) {
        return AGENT_CLOCK_NEVER;
    }
    return claim_at > claim->full_scan_at ? claim_at : claim->full_scan_at;
}

static apr_time_t due_claim(void *part)
{
    const agent_claim_t *claim = part;

    if (claim->context->mode != AGENT_MODE_RUNNING
        || !agent_worker_is_live(claim->worker) || claim->worker->is_in_doubt
        || claim->runners->is_stopped
        || agent_batch_is_full(&claim->runs->batches)) {
        return AGENT_CLOCK_NEVER;
    }
    return agent_runner_free_slots(claim->runners) > 0
        ? claim->schedule->claim_at
        : due_for_suspects(claim);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* Sets the rows to ask for: as many as there are slots. */
static void ask_for_room(agent_claim_t *claim)
{
    claim->ordinary = smaller(agent_runner_free_slots(claim->runners),
                              claim->limit.current);
    claim->suspects = smaller(agent_runner_free_suspect_runners(claim->runners),
                              claim->limit.current);
}

static const agent_statement_t claim_runs = {
    .name = "agent_claim_runs",
    .params = 6,
    .sql = "select account_id, run_id, thread_id, epoch, attempt, graph_id, "
           "ready_seq, last_event_seq, deadline_sec, max_shared, "
           "times_cleared, start_bytes, start from agent.claim_runs($1, $2, "
           "$3, $4, $5, $6)"};

static apr_status_t send_claim(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    agent_claim_t *claim = part;
    apr_pool_t *pool = database->scratch;
    bool full_scan = claim->full_scan_at <= claim->context->now;
    const char *params[6];

    claim->schedule->claim_at = AGENT_CLOCK_NEVER;
    ask_for_room(claim);
    if (full_scan) {
        claim->full_scan_at = claim->context->now + INTERVAL;
    }
    params[0] = claim->worker->id;
    params[1] = claim->context->graph_ids;
    params[2] = apr_itoa(pool, claim->ordinary);
    params[3] = full_scan || claim->mark < SLACK
        ? "0"
        : apr_psprintf(pool, "%" APR_INT64_T_FMT, claim->mark - SLACK);
    params[4] = apr_psprintf(pool, "%" APR_SIZE_T_FMT,
                             agent_start_claim_bytes(claim->runners));
    params[5] = apr_itoa(pool, claim->suspects);
    return agent_db_send(database->db, &claim_runs, params, err, pool);
}

static void read_lease(agent_lease_t *lease, const agent_db_result_t *result,
                       int row)
{
    apr_cpystrn(lease->account_id, agent_db_value(result, row, COL_ACCOUNT),
                sizeof(lease->account_id));
    apr_cpystrn(lease->thread_id, agent_db_value(result, row, COL_THREAD),
                sizeof(lease->thread_id));
    lease->attempt = (int)agent_db_integer(result, row, COL_ATTEMPT, 1);
    lease->saved_seq = agent_db_integer(result, row, COL_LAST_SEQ, -1);
    lease->next_seq = lease->saved_seq + 1;
    lease->limit_sec = agent_db_integer(result, row, COL_DEADLINE, 0);
    lease->times_cleared = (int)agent_db_integer(result, row, COL_TIMES_CLEARED,
                                                 0);
    lease->start_bytes = (apr_size_t)agent_db_integer(result, row,
                                                      COL_START_BYTES, 0);
}

static agent_runner_t *find_runner(agent_runner_table_t *table, int max_shared)
{
    return max_shared > 0 ? agent_runner_for_suspect(table, max_shared)
                          : agent_runner_least_loaded(table);
}

static void take_run(agent_claim_t *claim, const agent_db_result_t *result,
                     int row)
{
    agent_runs_t *runs = claim->runs;
    const char *run_id = agent_db_value(result, row, COL_RUN);
    apr_int64_t ready_seq = agent_db_integer(result, row, COL_READY_SEQ, 0);
    agent_lease_key_t key = {
        .epoch = (apr_int32_t)agent_db_integer(result, row, COL_EPOCH, 0)};
    agent_runner_t *runner;
    agent_lease_t *lease;
    const char *start;

    memcpy(key.run_id, run_id, sizeof(key.run_id));
    if (ready_seq > claim->mark) {
        claim->mark = ready_seq;
    }
    lease = agent_lease_find(&runs->leases, &key);
    if (lease != NULL) {
        /* A claim commits asynchronously, so a crash of the database can undo
         * it: then the run is claimed again under the same epoch while a runner
         * still executes it. Requeued, it gets the next epoch. */
        agent_run_end_release_duplicate(runs, lease);
        return;
    }
    agent_run_end_forget(runs, run_id);
    runner = find_runner(claim->runners,
                         (int)agent_db_integer(result, row, COL_MAX_SHARED, 0));
    lease = agent_lease_add(&runs->leases, &key,
                            runner != NULL ? &runner->group : NULL);
    read_lease(lease, result, row);
    if (runner == NULL) {
        /* The runners ended, or a drain began, while the claim was in flight.
         */
        agent_run_end_release(runs, lease, false, "no runner had room for it");
        return;
    }
    start = agent_db_value(result, row, COL_START);
    if (start != NULL && runner->state == AGENT_RUNNER_READY
        && agent_start_fits_now(runs, lease)) {
        agent_start_hand_over(runs, lease, start);
    }
}

/* Whether the queue may have more runs of one kind. */
static bool is_full(const agent_claim_t *claim, const agent_db_result_t *result)
{
    int rows = agent_db_rows(result);
    int suspects = 0;

    for (int row = 0; row < rows; row++) {
        suspects += agent_db_value(result, row, COL_MAX_SHARED) != NULL;
    }
    return (claim->ordinary > 0 && rows - suspects == claim->ordinary)
        || (claim->suspects > 0 && suspects == claim->suspects);
}

static void receive_claim(void *part, const agent_db_result_t *result)
{
    agent_claim_t *claim = part;
    apr_time_t *claim_at = &claim->schedule->claim_at;
    int rows = agent_db_rows(result);
    apr_time_t next = is_full(claim, result)
        ? claim->context->now
        : agent_database_after(claim->context, INTERVAL);

    /* A request that came since then may be for a run that this claim missed.
     */
    if (next < *claim_at) {
        *claim_at = next;
    }
    agent_limit_raise(&claim->limit);
    for (int row = 0; row < rows; row++) {
        take_run(claim, result, row);
    }
}

static void fail_claim(void *part, agent_failure_t failure)
{
    agent_claim_t *claim = part;

    claim->schedule->claim_at = agent_database_retry_at(claim->context,
                                                        failure);
    /* Other failures do not depend on the number of rows: a claim has no data
     * of runs as parameters. */
    if (failure == AGENT_FAILURE_LOST || failure == AGENT_FAILURE_TIMEOUT) {
        agent_limit_lower(&claim->limit,
                          larger(claim->ordinary, claim->suspects));
    }
    if (failure == AGENT_FAILURE_LOST) {
        /* Runs may be leased to this worker that it does not know. */
        agent_worker_doubt(claim->worker);
    }
}

const agent_operation_t agent_claim_operation = {
    "claim_runs", due_claim, send_claim, receive_claim, fail_claim};

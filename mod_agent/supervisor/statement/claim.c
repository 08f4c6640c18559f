/* SPDX-License-Identifier: Apache-2.0 */
/* claim_runs; see claim.h. */
#include "claim.h"

#include <string.h>

#include <apr_strings.h>

#include "../base/order.h"
#include "../lease/batch_send.h"
#include "../runner/pool/slots.h"
#include "../runner/run/run_end.h"
#include "start.h"

#define MAX_CLAIM 50
/* A transaction may take its ready_seq early and commit late: rows this far
 * below the highest one are always searched. */
#define SLACK 1000

/* Columns of the statement. */
enum {
    COL_DEPLOYMENT,
    COL_RUN,
    COL_THREAD,
    COL_EPOCH,
    COL_GRAPH,
    COL_ATTEMPT,
    COL_READY_SEQ,
    COL_LAST_SEQ,
    COL_MAX_SHARED,
    COL_QUARANTINES_PASSED,
    COL_START_BYTES,
    COL_STATE_BYTES,
    COL_OP,
    COL_START
};

void agent_claim_init(agent_claim_t *claim)
{
    agent_adaptive_limit_init(&claim->limit, MAX_CLAIM);
    APR_RING_INIT(&claim->asked, agent_runner_pool_t, asked_link);
}

/* ---- the statement ---- */

/* The arrays of the statement: of its graphs, and of its pools. */
typedef enum array_t {
    OF_GRAPH_DEPLOYMENT,
    OF_GRAPH_NAME,
    OF_GRAPH_MARK,
    /* The number of its pool in the arrays below, from 1. */
    OF_GRAPH_POOL,
    OF_POOL_ORDINARY,
    OF_POOL_QUARANTINED,
    OF_POOL_ACCOUNT,
    OF_POOL_RUNNING,
    ARRAYS,
    /* Those before the limits of the statement. */
    FIRST_ARRAYS = OF_POOL_ACCOUNT
} array_t;

static void add_value(apr_array_header_t *const *arrays, array_t array,
                      const char *value)
{
    APR_ARRAY_PUSH(arrays[array], const char *) = value;
}

/* Rows with a higher ready_seq are searched, per graph. */
static const char *print_mark(const agent_reported_graph_t *graph,
                              bool full_scan, apr_pool_t *pool)
{
    return full_scan || graph->max_ready_seq < SLACK
        ? "0"
        : apr_psprintf(pool, "%" APR_INT64_T_FMT, graph->max_ready_seq - SLACK);
}

static void add_pool(const agent_claim_t *claim,
                     apr_array_header_t *const *arrays,
                     const agent_runner_pool_t *runner_pool, apr_pool_t *pool)
{
    agent_graph_set_t *set = runner_pool->claim.set;
    bool full_scan = set->full_scan_at <= claim->context->now;
    const char *number;

    if (full_scan) {
        set->full_scan_at = claim->context->now + AGENT_CLAIM_INTERVAL;
    }
    add_value(arrays, OF_POOL_ORDINARY,
              apr_itoa(pool, runner_pool->claim.ordinary));
    add_value(arrays, OF_POOL_QUARANTINED,
              apr_itoa(pool, runner_pool->claim.quarantined));
    add_value(arrays, OF_POOL_ACCOUNT, agent_pool_account(runner_pool));
    add_value(arrays, OF_POOL_RUNNING,
              apr_itoa(pool, agent_slots_used(runner_pool)));
    number = apr_itoa(pool, arrays[OF_POOL_ORDINARY]->nelts);
    for (int i = 0; i < runner_pool->graphs.count; i++) {
        const agent_reported_graph_t *graph = &runner_pool->graphs.graphs[i];

        if (set->has[i]) {
            add_value(arrays, OF_GRAPH_DEPLOYMENT,
                      runner_pool->graphs.deployment_id);
            add_value(arrays, OF_GRAPH_NAME, graph->name);
            add_value(arrays, OF_GRAPH_MARK,
                      print_mark(graph, full_scan, pool));
            add_value(arrays, OF_GRAPH_POOL, number);
        }
    }
}

/* The two limits are between the arrays. */
static void print_arrays(const char **params, const agent_claim_t *claim,
                         apr_pool_t *pool)
{
    apr_array_header_t *arrays[ARRAYS];
    const agent_runner_pool_t *runner_pool;

    for (int i = 0; i < ARRAYS; i++) {
        arrays[i] = apr_array_make(pool, 8, sizeof(const char *));
    }
    AGENT_RING_EACH(runner_pool, &claim->asked, agent_runner_pool_t, asked_link)
    {
        add_pool(claim, arrays, runner_pool, pool);
    }
    for (int i = 0; i < ARRAYS; i++) {
        params[i < FIRST_ARRAYS ? i : i + 2] = agent_db_array(
            (const char *const *)(void *)arrays[i]->elts,
            (apr_size_t)arrays[i]->nelts, pool);
    }
}

static const agent_statement_t claim_runs = {
    .name = "agent_claim_runs",
    .params = 11,
    .sql = "select deployment_id, run_id, thread_id, epoch, graph_id, attempt, "
           "ready_seq, last_event_seq, max_shared, quarantines_passed, "
           "start_bytes, "
           "state_bytes, op, start "
           "from agent.claim_runs($1, $2, $3, $4, $5, $6, $7, $8, $9, "
           "$10, $11)"};

static apr_status_t send_claim(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    agent_claim_t *claim = part;
    apr_pool_t *pool = database->scratch;
    const char *params[3 + ARRAYS];

    agent_claim_choose(claim);
    params[0] = claim->worker->id;
    print_arrays(params + 1, claim, pool);
    params[1 + FIRST_ARRAYS] = apr_itoa(pool, claim->limit.current);
    params[2 + FIRST_ARRAYS] = apr_psprintf(
        pool, "%" APR_SIZE_T_FMT, agent_start_claim_bytes(claim->runners));
    return agent_db_send(database->db, &claim_runs, params, err, pool);
}

/* ---- the result ---- */

static void read_lease(agent_lease_t *lease, const agent_db_result_t *result,
                       int row)
{
    const char *op;

    apr_cpystrn(lease->deployment_id,
                agent_db_value(result, row, COL_DEPLOYMENT),
                sizeof(lease->deployment_id));
    apr_cpystrn(lease->thread_id, agent_db_value(result, row, COL_THREAD),
                sizeof(lease->thread_id));
    lease->attempt = (int)agent_db_integer(result, row, COL_ATTEMPT, 1);
    lease->saved_seq = agent_db_integer(result, row, COL_LAST_SEQ, -1);
    lease->next_seq = lease->saved_seq + 1;
    lease->quarantines_passed = (int)agent_db_integer(
        result, row, COL_QUARANTINES_PASSED, 0);
    lease->start_bytes = (apr_size_t)agent_db_integer(result, row,
                                                      COL_START_BYTES, 0);
    lease->request.state_bytes = (apr_size_t)agent_db_integer(
        result, row, COL_STATE_BYTES, 0);
    op = agent_db_value(result, row, COL_OP);
    lease->is_call = op != NULL;
    lease->is_reading = op != NULL && strcmp(op, "update") != 0;
}

/* A graph of the configuration: its pool, and its number there. */
typedef struct graph_ref_t {
    agent_runner_pool_t *pool;
    int graph;
} graph_ref_t;

/* Ends a run that no runner can execute, of which the claim knows. */
static bool end_failing(agent_runs_t *runs, agent_lease_t *lease,
                        const graph_ref_t *ref)
{
    const agent_graph_set_t *set = ref->pool != NULL ? ref->pool->failing_set
                                                     : NULL;
    char message[256];

    if (set == NULL || !set->has[ref->graph]) {
        return false;
    }
    apr_snprintf(message, sizeof(message),
                 "No process of the program of the graph starts (%s): the log "
                 "of the server says why.",
                 ref->pool->start_failure);
    agent_report_write(runs->context, AGENT_LOG_WARNING, "AGT0377", 0,
                       "run %.36s ends in error: no runner of pool %s starts "
                       "(%s)",
                       lease->key.run_id, ref->pool->config->name,
                       ref->pool->start_failure);
    agent_run_end_fail(runs, lease, "error", "RunnerStartError", message);
    return true;
}

static agent_runner_t *find_runner(agent_runner_table_t *table,
                                   const agent_db_result_t *result, int row,
                                   const graph_ref_t *ref)
{
    int max_shared = (int)agent_db_integer(result, row, COL_MAX_SHARED, 0);

    if (ref->pool == NULL || ref->pool->failing_set != NULL) {
        return NULL;
    }
    return max_shared > 0
        ? agent_slots_for_quarantined(table, ref->pool, max_shared, ref->graph)
        : agent_slots_least_loaded(ref->pool, ref->graph);
}

/* The pool and graph of a row; pool is NULL: the deployment has another id
 * since the claim was sent. */
static graph_ref_t find_graph(const agent_claim_t *claim,
                              const agent_db_result_t *result, int row)
{
    const char *deployment_id = agent_db_value(result, row, COL_DEPLOYMENT);
    const char *name = agent_db_value(result, row, COL_GRAPH);

    agent_runner_pool_t *pool;

    AGENT_RING_EACH(pool, &claim->asked, agent_runner_pool_t, asked_link)
    {
        agent_graph_table_t *graphs = &pool->graphs;
        int number = strcmp(graphs->deployment_id, deployment_id) == 0
            ? agent_graphs_find(graphs, name)
            : -1;

        if (number >= 0) {
            return (graph_ref_t){pool, number};
        }
    }
    return (graph_ref_t){NULL, -1};
}

/* The next claims begin below this row. */
static void raise_mark(const graph_ref_t *ref, const agent_db_result_t *result,
                       int row)
{
    apr_int64_t *mark = &ref->pool->graphs.graphs[ref->graph].max_ready_seq;

    *mark = AGENT_MAX(agent_db_integer(result, row, COL_READY_SEQ, 0), *mark);
}

/* Ends the leases of a run that was requeued in the database while one of this
 * worker's runners executes it. Returns whether a runner has not ended it yet.
 */
static bool lose_earlier(agent_runs_t *runs, const agent_lease_key_t *key)
{
    agent_lease_t *earlier;

    while ((earlier = agent_lease_find_earlier(&runs->leases, key)) != NULL
           && earlier->state == AGENT_LEASE_HELD) {
        agent_run_end_lose(runs, earlier);
    }
    return earlier != NULL;
}

/*
 * Whether this worker had a lease with this key and has not finished with it.
 * A claim does not wait for a standby, so a failover can undo it: then the run
 * is claimed again under the same epoch, while a runner still executes it, or a
 * statement about the first lease waits or is in flight, whose result would be
 * taken for one about the second lease.
 */
static bool is_known(const agent_runs_t *runs, const agent_lease_key_t *key)
{
    return agent_lease_find(&runs->leases, key) != NULL
        || agent_release_find(&runs->releases, key) != NULL
        || agent_batch_send_has(&runs->batches, key);
}

static void take_run(agent_claim_t *claim, const agent_db_result_t *result,
                     int row, const graph_ref_t *ref)
{
    agent_runs_t *runs = claim->runs;
    const char *run_id = agent_db_value(result, row, COL_RUN);
    agent_lease_key_t key = {
        .epoch = (apr_int32_t)agent_db_integer(result, row, COL_EPOCH, 0)};
    agent_runner_t *runner;
    agent_lease_t *lease;
    const char *start;
    bool is_repeated;

    memcpy(key.run_id, run_id, sizeof(key.run_id));
    /* Output of an earlier lease would be saved under this one. */
    agent_run_end_discard_output(runs, run_id);
    if (is_known(runs, &key)) {
        /* Requeued, it gets the next epoch. */
        agent_run_end_release_duplicate(
            runs, &key, agent_db_value(result, row, COL_DEPLOYMENT));
        return;
    }
    is_repeated = lose_earlier(runs, &key);
    runner = find_runner(claim->runners, result, row, ref);
    lease = agent_lease_add(&runs->leases, &key,
                            runner != NULL ? &runner->group : NULL);
    lease->is_repeated = is_repeated;
    read_lease(lease, result, row);
    lease->graph = ref->graph;
    if (end_failing(runs, lease, ref)) {
        return;
    }
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

static void count_row(agent_claim_t *claim, const graph_ref_t *ref,
                      bool is_quarantined)
{
    claim->got_ordinary += !is_quarantined;
    claim->got_quarantined += is_quarantined;
    if (ref->pool != NULL) {
        ref->pool->claim.got_ordinary += !is_quarantined;
        ref->pool->claim.got_quarantined += is_quarantined;
    }
}

static void receive_claim(void *part, const agent_db_result_t *result)
{
    agent_claim_t *claim = part;
    apr_time_t *claim_at = &claim->schedule->claim_at;

    /* A claim that was requested since then may find what this one missed. */
    *claim_at = AGENT_MIN(
        *claim_at, agent_database_after(claim->context, AGENT_CLAIM_INTERVAL));
    for (int row = 0; row < agent_db_rows(result); row++) {
        graph_ref_t ref = find_graph(claim, result, row);

        if (ref.pool != NULL) {
            raise_mark(&ref, result, row);
        }
        if (agent_db_value(result, row, COL_RUN) == NULL) {
            if (ref.pool != NULL) {
                agent_pool_wake(ref.pool, claim->context->now);
            }
            continue;
        }
        count_row(claim, &ref,
                  agent_db_value(result, row, COL_MAX_SHARED) != NULL);
        take_run(claim, result, row, &ref);
    }
    agent_claim_finish(claim, true);
    agent_adaptive_limit_raise(&claim->limit);
}

static void fail_claim(void *part, agent_failure_t failure)
{
    agent_claim_t *claim = part;

    claim->schedule->claim_at = agent_database_retry_at(claim->context,
                                                        failure);
    agent_claim_finish(claim, false);
    /* Other failures do not depend on the number of rows: a claim has no data
     * of runs as parameters. */
    if (failure == AGENT_FAILURE_LOST || failure == AGENT_FAILURE_TIMEOUT
        || failure == AGENT_FAILURE_CANCEL) {
        agent_adaptive_limit_lower(
            &claim->limit, AGENT_MAX(claim->ordinary, claim->quarantined));
    }
    if (failure == AGENT_FAILURE_LOST) {
        claim->schedule->lost_claim_until = claim->worker->control->sent_at
            + claim->context->timing.statement;
    }
}

static apr_time_t due_claim(void *part)
{
    return agent_claim_due(part);
}

const agent_operation_t agent_claim_operation = {
    "claim_runs", due_claim, send_claim, receive_claim, fail_claim};

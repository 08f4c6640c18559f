/* SPDX-License-Identifier: Apache-2.0 */
/* claim_runs; see claim.h. */
#include "claim.h"

#include <string.h>

#include <apr_strings.h>

#include "../run_end.h"
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
    COL_TIMES_CLEARED,
    COL_START_BYTES,
    COL_STATE_BYTES,
    COL_START
};

void agent_claim_init(agent_claim_t *claim)
{
    agent_limit_init(&claim->limit, MAX_CLAIM);
}

static apr_time_t earlier(apr_time_t a, apr_time_t b)
{
    return a < b ? a : b;
}

static apr_time_t later(apr_time_t a, apr_time_t b)
{
    return a > b ? a : b;
}

/* When all rows of a set are searched next: that of the sets that runners
 * have. */
static apr_time_t next_full_scan(const agent_claim_t *claim)
{
    const agent_graph_table_t *graphs = claim->graphs;
    apr_time_t next = AGENT_CLOCK_NEVER;

    for (int i = 0; i < graphs->set_count; i++) {
        if (graphs->sets[i].users > 0 && graphs->sets[i].count > 0) {
            next = earlier(next, graphs->sets[i].full_scan_at);
        }
    }
    return next;
}

/* Suspects have separate runners. While the others are full, suspects are
 * claimed when this worker has requeued runs, and each second, but not whenever
 * a run becomes ready. */
static apr_time_t due_for_suspects(const agent_claim_t *claim)
{
    const agent_schedule_t *schedule = claim->schedule;
    apr_time_t full_scan_at = next_full_scan(claim);

    if (full_scan_at == AGENT_CLOCK_NEVER
        || agent_runner_free_suspect_runners(claim->runners) == 0) {
        return AGENT_CLOCK_NEVER;
    }
    return later(schedule->claim_at,
                 earlier(schedule->suspects_at, full_scan_at));
}

/* Whether runners with these graphs have a free slot. */
static bool has_slot(const agent_claim_t *claim, const agent_graph_set_t *set)
{
    return set->users > 0 && set->count > 0
        && agent_runner_free_slots(claim->runners, set) > 0;
}

/* Whether any set has a free slot, or only one for which a claim is due. */
static bool has_any_slot(const agent_claim_t *claim, bool is_due)
{
    for (int i = 0; i < claim->graphs->set_count; i++) {
        const agent_graph_set_t *set = &claim->graphs->sets[i];

        if ((set->is_due || !is_due) && has_slot(claim, set)) {
            return true;
        }
    }
    return false;
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
    if (has_any_slot(claim, true)) {
        return claim->context->now;
    }
    return has_any_slot(claim, false) ? claim->schedule->claim_at
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

/* Sets the rows to ask for: at most as many as there are free slots. */
static void ask_for_room(agent_claim_t *claim)
{
    claim->ordinary = smaller(
        agent_runner_free_slots(claim->runners, claim->set),
        claim->limit.current);
    claim->suspects = smaller(agent_runner_free_suspect_runners(claim->runners),
                              claim->limit.current);
}

/* A claim is due for each set of graphs that runners have. */
static void begin_round(const agent_claim_t *claim)
{
    claim->schedule->claim_at = AGENT_CLOCK_NEVER;
    claim->schedule->suspects_at = AGENT_CLOCK_NEVER;
    for (int i = 0; i < claim->graphs->set_count; i++) {
        agent_graph_set_t *set = &claim->graphs->sets[i];

        set->is_due = set->users > 0 && set->count > 0;
    }
}

/* The next set, after the last one in turn, for which a claim is due and there
 * is room; NULL: none. */
static agent_graph_set_t *find_next_set(const agent_claim_t *claim)
{
    agent_graph_table_t *graphs = claim->graphs;
    int last = claim->set != NULL ? (int)(claim->set - graphs->sets) : -1;
    bool has_suspects = agent_runner_free_suspect_runners(claim->runners) > 0;

    for (int i = 1; i <= graphs->set_count; i++) {
        agent_graph_set_t *set = &graphs->sets[(last + i) % graphs->set_count];

        if (set->is_due && (has_suspects || has_slot(claim, set))) {
            return set;
        }
    }
    return NULL;
}

static void choose_set(agent_claim_t *claim)
{
    agent_graph_set_t *set;

    /* Other sets have their turn too while claims of one are full. */
    if (claim->schedule->claim_at <= claim->context->now
        || find_next_set(claim) == NULL) {
        begin_round(claim);
    }
    set = find_next_set(claim);
    /* due_claim() has found one. */
    claim->set = set != NULL ? set : claim->graphs->sets;
    claim->set->is_due = false;
}

static const char *print_deployment(const agent_graph_t *graph,
                                    apr_pool_t *pool)
{
    return graph->deployment_id;
}

static const char *print_name(const agent_graph_t *graph, apr_pool_t *pool)
{
    return graph->name;
}

static const char *print_start(const agent_graph_t *graph, apr_pool_t *pool)
{
    return "0";
}

static const char *print_mark(const agent_graph_t *graph, apr_pool_t *pool)
{
    return graph->max_ready_seq < SLACK
        ? "0"
        : apr_psprintf(pool, "%" APR_INT64_T_FMT, graph->max_ready_seq - SLACK);
}

/* Rows with a higher ready_seq are searched, per graph. */
static const char *print_marks(const agent_claim_t *claim, apr_pool_t *pool)
{
    agent_graph_set_t *set = claim->set;
    bool full_scan = set->full_scan_at <= claim->context->now;

    if (full_scan) {
        set->full_scan_at = claim->context->now + AGENT_CLAIM_INTERVAL;
    }
    return agent_graphs_print(claim->graphs, set,
                              full_scan ? print_start : print_mark, pool);
}

static const agent_statement_t claim_runs = {
    .name = "agent_claim_runs",
    .params = 7,
    .sql = "select deployment_id, run_id, thread_id, epoch, graph_id, attempt, "
           "ready_seq, "
           "last_event_seq, max_shared, times_cleared, "
           "start_bytes, state_bytes, start from agent.claim_runs($1, $2, $3, "
           "$4, $5, $6, $7)"};

static apr_status_t send_claim(void *part, agent_database_t *database,
                               agent_error_t **err)
{
    agent_claim_t *claim = part;
    apr_pool_t *pool = database->scratch;
    const char *params[7];

    choose_set(claim);
    ask_for_room(claim);
    params[0] = claim->worker->id;
    params[1] = agent_graphs_print(claim->graphs, claim->set, print_deployment,
                                   pool);
    params[2] = agent_graphs_print(claim->graphs, claim->set, print_name, pool);
    params[3] = print_marks(claim, pool);
    params[4] = apr_itoa(pool, claim->ordinary);
    params[5] = apr_psprintf(pool, "%" APR_SIZE_T_FMT,
                             agent_start_claim_bytes(claim->runners));
    params[6] = apr_itoa(pool, claim->suspects);
    return agent_db_send(database->db, &claim_runs, params, err, pool);
}

static void read_lease(agent_lease_t *lease, const agent_db_result_t *result,
                       int row)
{
    apr_cpystrn(lease->deployment_id,
                agent_db_value(result, row, COL_DEPLOYMENT),
                sizeof(lease->deployment_id));
    apr_cpystrn(lease->thread_id, agent_db_value(result, row, COL_THREAD),
                sizeof(lease->thread_id));
    lease->attempt = (int)agent_db_integer(result, row, COL_ATTEMPT, 1);
    lease->saved_seq = agent_db_integer(result, row, COL_LAST_SEQ, -1);
    lease->next_seq = lease->saved_seq + 1;
    lease->times_cleared = (int)agent_db_integer(result, row, COL_TIMES_CLEARED,
                                                 0);
    lease->start_bytes = (apr_size_t)agent_db_integer(result, row,
                                                      COL_START_BYTES, 0);
    lease->request.state_bytes = (apr_size_t)agent_db_integer(
        result, row, COL_STATE_BYTES, 0);
}

static agent_runner_t *find_runner(agent_runner_table_t *table,
                                   const agent_db_result_t *result, int row,
                                   int graph)
{
    int max_shared = (int)agent_db_integer(result, row, COL_MAX_SHARED, 0);

    return max_shared > 0 ? agent_runner_for_suspect(table, max_shared, graph)
                          : agent_runner_least_loaded(table, graph);
}

/* The number of the run's graph, whose low-water mark rises; -1: the deployment
 * has another id since the claim was sent. */
static int find_graph(const agent_claim_t *claim,
                      const agent_db_result_t *result, int row)
{
    apr_int64_t ready_seq = agent_db_integer(result, row, COL_READY_SEQ, 0);
    int number = agent_graphs_find(claim->graphs,
                                   agent_db_value(result, row, COL_DEPLOYMENT),
                                   agent_db_value(result, row, COL_GRAPH));

    if (number >= 0
        && ready_seq > claim->graphs->graphs[number].max_ready_seq) {
        claim->graphs->graphs[number].max_ready_seq = ready_seq;
    }
    return number;
}

static void take_run(agent_claim_t *claim, const agent_db_result_t *result,
                     int row)
{
    agent_runs_t *runs = claim->runs;
    const char *run_id = agent_db_value(result, row, COL_RUN);
    agent_lease_key_t key = {
        .epoch = (apr_int32_t)agent_db_integer(result, row, COL_EPOCH, 0)};
    int graph = find_graph(claim, result, row);
    agent_runner_t *runner;
    agent_lease_t *lease;
    const char *start;

    memcpy(key.run_id, run_id, sizeof(key.run_id));
    lease = agent_lease_find(&runs->leases, &key);
    if (lease != NULL) {
        /* A claim commits asynchronously, so a crash of the database can undo
         * it: then the run is claimed again under the same epoch while a runner
         * still executes it. Requeued, it gets the next epoch. */
        agent_run_end_release_duplicate(runs, lease);
        return;
    }
    agent_run_end_forget(runs, run_id);
    runner = graph >= 0 ? find_runner(claim->runners, result, row, graph)
                        : NULL;
    lease = agent_lease_add(&runs->leases, &key,
                            runner != NULL ? &runner->group : NULL);
    read_lease(lease, result, row);
    lease->graph = graph;
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
        : agent_database_after(claim->context, AGENT_CLAIM_INTERVAL);

    /* A claim that was requested since then may find what this one missed. */
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
    for (int i = 0; i < claim->graphs->set_count; i++) {
        claim->graphs->sets[i].is_due = false;
    }
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

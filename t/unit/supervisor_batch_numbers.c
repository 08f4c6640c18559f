/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* The numbers of a run's batches, whose statements fail at random and are sent
 * again in other parts; see supervisor/statement/save_params.h and
 * sql/functions/internal/leases/fence_batch.sql. */
#include "supervisor_queue.h"

#include <libpq-fe.h>

#define ROUNDS 200
#define STEPS  400
#define SHORT  ((apr_size_t)100)
#define LONG   (AGENT_BATCH_LONG_LINE + 1)

/* A run in the database. */
typedef struct row_t {
    int batch;
    int lines;
} row_t;

/* The first batch of a run under its last number. */
typedef struct first_t {
    int batch;
    int last;
} first_t;

typedef struct round_t {
    queue_t *q;
    unsigned seed;
    int added[RUNS];
    first_t firsts[RUNS];
    row_t rows[RUNS];
} round_t;

static int choose(round_t *round, int count)
{
    round->seed = round->seed * 1103515245U + 12345U;
    return (int)(round->seed >> 16) % count;
}

/* Its number among those of the run is in its length. */
static void add_numbered(round_t *round, int run, apr_size_t base)
{
    apr_size_t length = base + (apr_size_t)round->added[run]++;
    char *line = apr_palloc(round->q->fixture->runs->context->pool, length);

    memset(line, ' ', length);
    line[0] = '{';
    line[length - 1] = '}';
    agent_batch_add(round->q->batches, round->q->fixture->leases[run],
                    choose(round, 3) == 0 ? AGENT_ITEM_TASK : AGENT_ITEM_EVENT,
                    line, length, -1);
}

static int number_of(const agent_batch_t *batch, int item)
{
    apr_size_t length = agent_batch_item(batch, item)->length;

    return (int)(length - (length >= LONG ? LONG : SHORT));
}

static bool has_more_than_events(const agent_batch_t *batch,
                                 const agent_batch_run_t *run)
{
    int i = run->first;

    while (i >= 0 && agent_batch_item(batch, i)->kind == AGENT_ITEM_EVENT) {
        i = agent_batch_item(batch, i)->next;
    }
    return i >= 0;
}

/* A batch that is repeated has no other lines: if those were undone, the
 * number would not show it. */
static void begin(round_t *round, agent_batch_t *batch)
{
    apr_hash_index_t *at = apr_hash_first(batch->pool, batch->runs);

    for (; at != NULL; at = apr_hash_next(at)) {
        const agent_batch_run_t *run = apr_hash_this_val(at);
        int i = run->key.run_id[0] - '0';
        int number = round->q->fixture->leases[i]->saved_batches + 1;
        first_t *first = &round->firsts[i];

        if (run->is_discarded || !has_more_than_events(batch, run)) {
            continue;
        }
        if (first->batch != number) {
            *first = (first_t){number, number_of(batch, run->last)};
        }
        assert_true(number_of(batch, run->last) <= first->last);
    }
    agent_batch_send_begin(round->q->batches, batch);
}

/* The server executes the statement. */
static void commit(round_t *round, const agent_batch_t *batch)
{
    apr_hash_index_t *at = apr_hash_first(batch->pool, batch->runs);

    for (; at != NULL; at = apr_hash_next(at)) {
        const agent_batch_run_t *run = apr_hash_this_val(at);
        int i = run->key.run_id[0] - '0';
        const agent_lease_t *lease = round->q->fixture->leases[i];
        int number = lease->saved_batches + 1;
        const agent_item_t *first = agent_batch_item(batch, run->first);
        row_t *row = &round->rows[i];

        if (run->is_discarded) {
            continue;
        }
        assert_in_range(number, row->batch, row->batch + 1);
        assert_int_equal(run->is_counted, has_more_than_events(batch, run));
        assert_int_equal(first->seq - (first->kind == AGENT_ITEM_EVENT),
                         lease->saved_seq);
        assert_true(number_of(batch, run->first) <= row->lines);
        row->lines = AGENT_MAX(row->lines, number_of(batch, run->last) + 1);
        row->batch = run->is_counted ? number : row->batch;
    }
}

static void add_row(PGresult *rows, int row, char *run_id)
{
    char *values[] = {run_id, "saved", "f", "1000"};

    for (int i = 0; i < 4; i++) {
        assert_true(
            PQsetvalue(rows, row, i, values[i], (int)strlen(values[i])));
    }
}

static void answer(round_t *round, const agent_batch_t *batch,
                   const agent_operation_t *operation)
{
    PGresult *rows = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc columns[] = {
        {"run_id"}, {"outcome"}, {"promoted"}, {"elapsed_usec"}};
    apr_hash_index_t *at = apr_hash_first(batch->pool, batch->runs);

    assert_true(PQsetResultAttrs(rows, 4, columns));
    for (int row = 0; at != NULL; at = apr_hash_next(at)) {
        const agent_batch_run_t *run = apr_hash_this_val(at);

        if (!run->is_discarded) {
            add_row(rows, row++,
                    apr_pstrndup(batch->pool, run->key.run_id, 36));
        }
    }
    operation->receive(&round->q->save, (const agent_db_result_t *)&rows);
    PQclear(rows);
}

/* The statement in flight ends: it may be executed and its answer lost. */
static void end_statement(round_t *round, const agent_batch_t *batch,
                          const agent_operation_t *operation)
{
    static const agent_failure_t failures[] = {
        AGENT_FAILURE_LOST, AGENT_FAILURE_LOCK, AGENT_FAILURE_CANCEL};
    int outcome = choose(round, 6);

    round->q->save.sent_on = &round->q->output;
    if (outcome >= 3) {
        commit(round, batch);
        if (outcome == 3) {
            (operation->fail)(&round->q->save, AGENT_FAILURE_LOST);
            return;
        }
        answer(round, batch, operation);
        return;
    }
    (operation->fail)(&round->q->save, failures[outcome]);
}

static void step_shared(round_t *round)
{
    agent_batch_queue_t *queue = round->q->batches;
    agent_batch_t *batch;

    if (queue->sent_shared != NULL) {
        end_statement(round, queue->sent_shared, &agent_batch_operation);
        return;
    }
    agent_batch_move_step(queue);
    batch = agent_batch_send_next_shared(queue);
    if (batch != NULL) {
        begin(round, batch);
    }
}

static void step_dedicated(round_t *round)
{
    agent_batch_queue_t *queue = round->q->batches;
    agent_batch_t *batch;

    if (queue->sent_dedicated != NULL) {
        end_statement(round, queue->sent_dedicated,
                      &agent_dedicated_batch_operation);
        return;
    }
    batch = agent_batch_send_next_dedicated(queue);
    if (batch != NULL) {
        const agent_lease_t *lease = agent_save_find_lease(
            round->q->fixture->runs, batch);

        batch = agent_batch_split_by_cost(
            queue, batch, agent_batch_size_limit(&lease->batch_size));
        begin(round, batch);
    }
}

static void step(round_t *round, bool adds)
{
    agent_context_t *context = round->q->fixture->runs->context;

    context->now += apr_time_from_sec(60);
    switch (choose(round, adds ? 8 : 4)) {
    case 0:
    case 1:
        step_shared(round);
        break;
    case 2:
    case 3:
        step_dedicated(round);
        break;
    case 4:
        add_numbered(round, choose(round, RUNS), LONG);
        break;
    default:
        add_numbered(round, choose(round, RUNS), SHORT);
    }
}

static void check_round(unsigned seed, apr_pool_t *pool)
{
    round_t round = {.q = make_logged(pool), .seed = seed};

    round.q->fixture->runs->context->timing.patience = apr_time_from_sec(
        1000000000);
    for (int i = 0; i < RUNS; i++) {
        round.q->fixture->leases[i]->saved_seq = -1;
    }
    for (int i = 0; i < STEPS; i++) {
        step(&round, true);
    }
    for (int i = 0; i < 100 * STEPS && !agent_batch_is_empty(round.q->batches);
         i++) {
        step(&round, false);
    }
    assert_true(agent_batch_is_empty(round.q->batches));
    for (int i = 0; i < RUNS; i++) {
        assert_int_equal(round.rows[i].lines, round.added[i]);
        assert_int_equal(round.rows[i].batch,
                         round.q->fixture->leases[i]->saved_batches);
    }
}

static void each_batch_follows_the_one_before_or_repeats_it(void **state)
{
    for (unsigned seed = 0; seed < ROUNDS; seed++) {
        apr_pool_t *pool;

        apr_pool_create(&pool, *state);
        check_round(seed, pool);
        apr_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(each_batch_follows_the_one_before_or_repeats_it),
    };

    return CHECK_RUN(tests);
}

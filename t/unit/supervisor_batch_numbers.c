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

/* What the database has of a run. */
typedef struct row_t {
    int batch;
    int lines;
} row_t;

/* What was sent first under the last number of a run. */
typedef struct first_t {
    int batch;
    int last;
} first_t;

typedef struct trial_t {
    queue_t *q;
    unsigned seed;
    int added[RUNS];
    first_t firsts[RUNS];
    row_t rows[RUNS];
} trial_t;

static int choose(trial_t *trial, int count)
{
    trial->seed = trial->seed * 1103515245U + 12345U;
    return (int)(trial->seed >> 16) % count;
}

/* Its number among those of the run is in its length. */
static void add_numbered(trial_t *trial, int run, apr_size_t base)
{
    apr_size_t length = base + (apr_size_t)trial->added[run]++;
    char *line = apr_palloc(trial->q->fixture->runs->context->pool, length);

    memset(line, ' ', length);
    line[0] = '{';
    line[length - 1] = '}';
    agent_batch_add(trial->q->batches, trial->q->fixture->leases[run],
                    AGENT_ITEM_CHECKPOINT, line, length, -1);
}

static int number_of(const agent_batch_t *batch, int item)
{
    apr_size_t length = agent_batch_item(batch, item)->length;

    return (int)(length - (length >= LONG ? LONG : SHORT));
}

/* A batch that is repeated has no other lines: if those were undone, the
 * number would not show it. */
static void begin(trial_t *trial, agent_batch_t *batch)
{
    apr_hash_index_t *at = apr_hash_first(batch->pool, batch->runs);

    for (; at != NULL; at = apr_hash_next(at)) {
        const agent_batch_run_t *run = apr_hash_this_val(at);
        int i = run->key.run_id[0] - '0';
        int number = trial->q->fixture->leases[i]->saved_batches + 1;
        first_t *first = &trial->firsts[i];

        if (run->is_discarded) {
            continue;
        }
        if (first->batch != number) {
            *first = (first_t){number, number_of(batch, run->last)};
        }
        assert_true(number_of(batch, run->last) <= first->last);
    }
    agent_batch_send_begin(trial->q->batches, batch);
}

/* The server executes the statement. */
static void commit(trial_t *trial, const agent_batch_t *batch)
{
    apr_hash_index_t *at = apr_hash_first(batch->pool, batch->runs);

    for (; at != NULL; at = apr_hash_next(at)) {
        const agent_batch_run_t *run = apr_hash_this_val(at);
        int i = run->key.run_id[0] - '0';
        int number = trial->q->fixture->leases[i]->saved_batches + 1;
        row_t *row = &trial->rows[i];

        if (run->is_discarded) {
            continue;
        }
        assert_in_range(number, row->batch, row->batch + 1);
        assert_true(number_of(batch, run->first) <= row->lines);
        row->lines = AGENT_MAX(row->lines, number_of(batch, run->last) + 1);
        row->batch = number;
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

static void answer(trial_t *trial, const agent_batch_t *batch,
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
    operation->receive(&trial->q->save, (const agent_db_result_t *)&rows);
    PQclear(rows);
}

/* The statement in flight ends: it may be executed and its answer lost. */
static void end_statement(trial_t *trial, const agent_batch_t *batch,
                          const agent_operation_t *operation)
{
    static const agent_failure_t failures[] = {
        AGENT_FAILURE_LOST, AGENT_FAILURE_LOCK, AGENT_FAILURE_CANCEL};
    int outcome = choose(trial, 6);

    trial->q->save.sent_on = &trial->q->output;
    if (outcome >= 3) {
        commit(trial, batch);
        if (outcome == 3) {
            (operation->fail)(&trial->q->save, AGENT_FAILURE_LOST);
            return;
        }
        answer(trial, batch, operation);
        return;
    }
    (operation->fail)(&trial->q->save, failures[outcome]);
}

static void step_shared(trial_t *trial)
{
    agent_batch_queue_t *queue = trial->q->batches;
    agent_batch_t *batch;

    if (queue->sent_shared != NULL) {
        end_statement(trial, queue->sent_shared, &agent_batch_operation);
        return;
    }
    agent_batch_move_step(queue);
    batch = agent_batch_send_next_shared(queue);
    if (batch != NULL) {
        begin(trial, batch);
    }
}

static void step_dedicated(trial_t *trial)
{
    agent_batch_queue_t *queue = trial->q->batches;
    agent_batch_t *batch;

    if (queue->sent_dedicated != NULL) {
        end_statement(trial, queue->sent_dedicated,
                      &agent_dedicated_batch_operation);
        return;
    }
    batch = agent_batch_send_next_dedicated(queue);
    if (batch != NULL) {
        const agent_lease_t *lease = agent_save_find_lease(
            trial->q->fixture->runs, batch);

        batch = agent_batch_split_by_cost(
            queue, batch, agent_batch_size_limit(&lease->batch_size));
        begin(trial, batch);
    }
}

static void step(trial_t *trial, bool adds)
{
    agent_context_t *context = trial->q->fixture->runs->context;

    context->now += apr_time_from_sec(60);
    switch (choose(trial, adds ? 8 : 4)) {
    case 0:
    case 1:
        step_shared(trial);
        break;
    case 2:
    case 3:
        step_dedicated(trial);
        break;
    case 4:
        add_numbered(trial, choose(trial, RUNS), LONG);
        break;
    default:
        add_numbered(trial, choose(trial, RUNS), SHORT);
    }
}

static void check_trial(unsigned seed, apr_pool_t *pool)
{
    trial_t trial = {.q = make_logged(pool), .seed = seed};

    trial.q->fixture->runs->context->timing.patience = apr_time_from_sec(
        1000000000);
    for (int i = 0; i < STEPS; i++) {
        step(&trial, true);
    }
    for (int i = 0; i < 100 * STEPS && !agent_batch_is_empty(trial.q->batches);
         i++) {
        step(&trial, false);
    }
    assert_true(agent_batch_is_empty(trial.q->batches));
    for (int i = 0; i < RUNS; i++) {
        assert_int_equal(trial.rows[i].lines, trial.added[i]);
        assert_int_equal(trial.rows[i].batch,
                         trial.q->fixture->leases[i]->saved_batches);
    }
}

static void each_batch_follows_the_one_before_or_repeats_it(void **state)
{
    for (unsigned seed = 0; seed < ROUNDS; seed++) {
        apr_pool_t *pool;

        apr_pool_create(&pool, *state);
        check_trial(seed, pool);
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

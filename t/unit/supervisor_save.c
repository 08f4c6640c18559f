/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Which batch of output is sent next on each connection; see
 * supervisor/statement/save.h. */
#include "supervisor_batches.h"

#include <libpq-fe.h>

#include "../../mod_agent/supervisor/lease/fair_queue.h"
#include "../../mod_agent/supervisor/statement/save.h"

#define NOW apr_time_from_sec(1000)

/* The tables, and the statement of a worker that has a lease. */
typedef struct queue_t {
    fixture_t *fixture;
    agent_batch_queue_t *batches;
    agent_worker_t worker;
    agent_database_t control;
    agent_database_t output;
    agent_save_t save;
} queue_t;

static queue_t *make_queue(apr_pool_t *pool)
{
    queue_t *q = apr_pcalloc(pool, sizeof(*q));

    q->fixture = make_fixture(pool);
    q->fixture->runs->context->now = NOW;
    q->batches = &q->fixture->runs->batches;
    q->worker = (agent_worker_t){.context = q->fixture->runs->context,
                                 .state = AGENT_WORKER_LIVE};
    q->output.context = q->fixture->runs->context;
    q->output.connection = 1;
    q->save = (agent_save_t){.worker = &q->worker,
                             .runs = q->fixture->runs,
                             .control = &q->control,
                             .output = &q->output,
                             .sent_on = &q->output};
    return q;
}

static void add(const queue_t *q, int run, apr_size_t length)
{
    char *line = apr_palloc(q->fixture->runs->context->pool, length);

    memset(line, ' ', length);
    line[0] = '{';
    line[length - 1] = '}';
    /* The reply makes its batch due now. */
    agent_batch_add(q->batches, q->fixture->leases[run], AGENT_ITEM_CHECKPOINT,
                    line, length, 1);
}

/* A line for the shared batch. */
static void add_short(const queue_t *q, int run)
{
    add(q, run, 100);
}

/* A line for the run's first dedicated batch, or its last one. */
static void add_long(const queue_t *q, int run)
{
    add(q, run, AGENT_BATCH_LONG_LINE + 1);
}

static bool is_dedicated_due(queue_t *q)
{
    return agent_dedicated_batch_operation.due(&q->save) <= NOW;
}

static agent_batch_t *first_of(const queue_t *q)
{
    return first_batch(q->batches);
}

static void a_dedicated_batch_waits_for_the_earlier_shared_batch_of_its_run(
    void **state)
{
    queue_t *q = make_queue(*state);

    add_short(q, 0);
    add_long(q, 0);
    assert_true(agent_batch_operation.due(&q->save) <= NOW);
    assert_true(agent_dedicated_batch_operation.due(&q->save)
                == AGENT_CLOCK_NEVER);
    agent_batch_remove(q->batches, first_of(q));
    assert_true(is_dedicated_due(q));
}

static void a_dedicated_batch_waits_for_a_shared_batch_of_its_run_in_flight(
    void **state)
{
    queue_t *q = make_queue(*state);

    add_short(q, 0);
    first_of(q)->is_sealed = first_of(q)->is_sent = true;
    add_long(q, 0);
    assert_false(is_dedicated_due(q));
    agent_batch_remove(q->batches, first_of(q));
    assert_true(is_dedicated_due(q));
}

static void a_dedicated_batch_waits_for_no_shared_batch_of_other_runs(
    void **state)
{
    queue_t *q = make_queue(*state);

    add_short(q, 1);
    add_long(q, 0);
    assert_true(is_dedicated_due(q));
}

static void a_dedicated_batch_waits_for_no_output_that_was_dropped(void **state)
{
    queue_t *q = make_queue(*state);

    add_short(q, 0);
    add_short(q, 1);
    agent_batch_discard(q->batches, q->fixture->leases[0]->key.run_id, NULL);
    add_long(q, 0);
    assert_false(first_of(q)->is_dedicated);
    assert_true(is_dedicated_due(q));
}

static void of_the_dedicated_batches_of_a_run_only_the_first_one_is_due(
    void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    first_of(q)->is_sealed = first_of(q)->is_sent = true;
    add_long(q, 0);
    assert_ptr_not_equal(first_of(q), last_batch(q->batches));
    assert_false(is_dedicated_due(q));
    agent_batch_remove(q->batches, first_of(q));
    assert_true(is_dedicated_due(q));
}

static void shared_batches_are_sent_in_their_order(void **state)
{
    queue_t *q = make_queue(*state);

    add_short(q, 0);
    first_of(q)->is_sealed = true;
    first_of(q)->retry_at = NOW + 1;
    add_short(q, 1);
    assert_ptr_not_equal(first_of(q), last_batch(q->batches));
    assert_true(agent_batch_operation.due(&q->save) == NOW + 1);
}

static void a_worker_without_a_lease_saves_nothing(void **state)
{
    queue_t *q = make_queue(*state);

    add_short(q, 0);
    add_long(q, 1);
    q->worker.state = AGENT_WORKER_NEW;
    assert_true(agent_batch_operation.due(&q->save) == AGENT_CLOCK_NEVER);
    assert_true(agent_dedicated_batch_operation.due(&q->save)
                == AGENT_CLOCK_NEVER);
}

/* The first batch is sent, with the limit that it needs. */
static void send_first(queue_t *q)
{
    agent_batch_t *batch = first_of(q);

    batch->retry_at = 0;
    assert_true(is_dedicated_due(q));
    batch->has_long_limit = agent_save_needs_long_limit(
        agent_save_find_lease(q->fixture->runs, batch));
    agent_batch_send_begin(q->batches, batch);
}

/* It is sent, and fails. (cmocka has a macro fail().) */
static void fail_first(queue_t *q, agent_failure_t failure)
{
    send_first(q);
    q->control.answered_at = NOW + 1;
    (agent_dedicated_batch_operation.fail)(&q->save, failure);
}

static void after_a_time_out_of_several_lines_a_quarter_is_sent(void **state)
{
    queue_t *q = make_queue(*state);
    agent_lease_t *lease = q->fixture->leases[0];

    for (int i = 0; i < 8; i++) {
        add_long(q, 0);
    }
    for (int i = 0; i < 3; i++) {
        fail_first(q, AGENT_FAILURE_TIMEOUT);
        assert_int_equal(first_of(q)->failures, 0);
    }
    assert_int_equal(agent_batch_size_limit(&lease->batch_size),
                     first_of(q)->cost / 4);
    assert_false(lease->batch_size.needs_long_limit);
}

/* The lines that cost much may be the short ones. */
static void after_a_time_out_of_several_lines_at_most_half_of_them_are_sent(
    void **state)
{
    queue_t *q = make_queue(*state);
    agent_lease_t *lease = q->fixture->leases[0];

    add_long(q, 0);
    for (int i = 0; i < 6; i++) {
        add_short(q, 0);
    }
    add(q, 0, 1024 * 1024);
    fail_first(q, AGENT_FAILURE_TIMEOUT);
    assert_int_equal(
        agent_batch_split_by_cost(q->batches, first_of(q),
                                  agent_batch_size_limit(&lease->batch_size))
            ->items->nelts,
        1);
}

static void a_line_alone_that_needs_more_than_a_second_gets_more(void **state)
{
    queue_t *q = make_queue(*state);
    agent_lease_t *lease = q->fixture->leases[0];

    add_long(q, 0);
    assert_false(agent_save_needs_long_limit(lease));
    fail_first(q, AGENT_FAILURE_TIMEOUT);
    assert_int_equal(first_of(q)->failures, 0);
    assert_true(agent_save_needs_long_limit(lease));
    /* The next line alone has it too, until one is quick. */
    agent_batch_size_save(&lease->batch_size, 1, AGENT_BATCH_SIZE_TIMEOUT);
    assert_int_equal(agent_batch_size_limit(&lease->batch_size), 1);
    assert_true(agent_save_needs_long_limit(lease));
    agent_batch_size_save(&lease->batch_size, 1, AGENT_BATCH_SIZE_TIMEOUT / 2);
    assert_false(agent_save_needs_long_limit(lease));
}

static void time_outs_of_a_line_alone_count_under_the_longer_limit(void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    for (int i = 0; i < 3; i++) {
        fail_first(q, AGENT_FAILURE_TIMEOUT);
        assert_int_equal(first_of(q)->failures, i);
    }
}

static void a_time_out_while_the_database_answers_nothing_does_not_count(
    void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    fail_first(q, AGENT_FAILURE_TIMEOUT);
    send_first(q);
    q->control.answered_at = first_of(q)->sent_at;
    (agent_dedicated_batch_operation.fail)(&q->save, AGENT_FAILURE_TIMEOUT);
    assert_int_equal(first_of(q)->failures, 0);
}

static void a_lost_connection_does_not_count(void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    for (int i = 0; i < 9; i++) {
        fail_first(q, AGENT_FAILURE_LOST);
        assert_int_equal(first_of(q)->failures, 0);
    }
}

/* Others may use the memory. */
static void a_line_alone_without_memory_counts_and_is_tried_again_after_10_s(
    void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    for (int i = 1; i < 3; i++) {
        fail_first(q, AGENT_FAILURE_MEMORY);
        assert_int_equal(first_of(q)->failures, i);
        assert_true(first_of(q)->retry_at >= NOW + apr_time_from_sec(8));
    }
}

static void several_lines_without_memory_are_halved(void **state)
{
    queue_t *q = make_queue(*state);
    const agent_lease_t *lease = q->fixture->leases[0];

    for (int i = 0; i < 8; i++) {
        add_long(q, 0);
    }
    fail_first(q, AGENT_FAILURE_MEMORY);
    assert_int_equal(first_of(q)->failures, 0);
    assert_int_equal(agent_batch_size_limit(&lease->batch_size),
                     first_of(q)->cost / 2);
}

/* The connection of the first batch is lost, perhaps with the notice of a
 * crash; so is the control connection. */
static void lose_first(queue_t *q, bool has_notice, bool has_output_notice)
{
    fail_first(q, AGENT_FAILURE_LOST);
    q->control.crash_reported_at = has_notice ? NOW : 0;
    q->output.crash_reported_at = has_output_notice ? NOW : 0;
    agent_save_on_connected(&q->save, &q->output);
}

static void a_crash_of_the_process_that_stores_a_line_alone_counts(void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    for (int i = 1; i < 3; i++) {
        lose_first(q, true, false);
        assert_int_equal(first_of(q)->failures, i);
    }
    /* Another connection was lost without an attempt. */
    agent_save_on_connected(&q->save, &q->output);
    assert_int_equal(first_of(q)->failures, 2);
}

/* It may have been made before the crash, whose notice is not read yet. */
static void a_crash_counts_when_the_connection_of_the_line_is_made_again(
    void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    fail_first(q, AGENT_FAILURE_LOST);
    agent_save_on_connected(&q->save, &q->control);
    q->control.crash_reported_at = NOW;
    agent_save_on_connected(&q->save, &q->output);
    assert_int_equal(first_of(q)->failures, 1);
}

static void a_crash_of_another_process_does_not_count(void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    lose_first(q, true, true);
    assert_int_equal(first_of(q)->failures, 0);
}

static void a_crash_while_several_lines_are_stored_does_not_count(void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    add_long(q, 0);
    lose_first(q, true, false);
    assert_int_equal(first_of(q)->failures, 0);
}

static apr_time_t due_on_bulk(const queue_t *q)
{
    return agent_bulk_batch_operation.due((void *)&q->save);
}

static void without_an_output_connection_dedicated_batches_use_the_bulk_one(
    void **state)
{
    queue_t *q = make_queue(*state);

    q->output.lost_at = NOW;
    assert_true(due_on_bulk(q) == AGENT_CLOCK_NEVER);
    add_long(q, 0);
    add_long(q, 1);
    assert_true(due_on_bulk(q) == NOW + apr_time_from_sec(5));
    q->output.lost_at = 0;
    assert_true(due_on_bulk(q) == AGENT_CLOCK_NEVER);
    /* One statement at a time, on whichever connection. */
    q->output.lost_at = NOW - apr_time_from_sec(5);
    assert_true(due_on_bulk(q) == NOW);
    agent_batch_send_begin(q->batches, first_of(q));
    assert_true(due_on_bulk(q) == AGENT_CLOCK_NEVER);
    assert_false(is_dedicated_due(q));
}

/* The first batch in flight is saved, with an answer after that time, in which
 * the database executed it for the other one. */
static void save_first(queue_t *q, const agent_operation_t *operation,
                       apr_interval_time_t used, apr_interval_time_t executed)
{
    PGresult *rows = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc columns[] = {
        {"run_id"}, {"outcome"}, {"promoted"}, {"elapsed_usec"}};
    char *values[] = {"", "fenced", "f",
                      apr_ltoa(q->fixture->runs->context->pool, executed)};

    assert_true(PQsetResultAttrs(rows, 4, columns));
    for (int i = 0; i < 4; i++) {
        assert_true(PQsetvalue(rows, 0, i, values[i], (int)strlen(values[i])));
    }
    q->fixture->runs->context->now += used;
    operation->receive(&q->save, (const agent_db_result_t *)&rows);
    PQclear(rows);
}

static void a_slow_shared_batch_gives_its_largest_run_dedicated_batches(
    void **state)
{
    queue_t *q = make_queue(*state);

    add_short(q, 0);
    for (int i = 0; i < 500; i++) {
        add_short(q, 1);
    }
    agent_batch_send_begin(q->batches, first_of(q));
    save_first(q, &agent_batch_operation, apr_time_from_sec(1),
               apr_time_from_sec(1));
    agent_batch_move_step(q->batches);
    add_short(q, 0);
    assert_int_equal(count_dedicated(q->batches), 1);
    assert_memory_equal(last_batch(q->batches)->run_id,
                        q->fixture->leases[1]->key.run_id, 36);
}

static void lines_that_are_not_sent_have_no_part_of_a_slow_batch(void **state)
{
    queue_t *q = make_queue(*state);

    for (int i = 0; i < 400; i++) {
        add_short(q, 0);
    }
    add_short(q, 1);
    agent_batch_discard(q->batches, q->fixture->leases[0]->key.run_id, NULL);
    agent_batch_send_begin(q->batches, first_of(q));
    save_first(q, &agent_batch_operation, apr_time_from_sec(1),
               apr_time_from_sec(1));
    assert_true(agent_batch_size_is_dedicated(
        &q->fixture->leases[1]->batch_size, q->batches->context->now));
    assert_int_equal(agent_batch_size_limit(&q->batches->batch_size),
                     AGENT_BATCH_SIZE_MIN);
}

static void after_a_slow_shared_batch_other_runs_with_much_output_leave_too(
    void **state)
{
    queue_t *q = make_queue(*state);
    const agent_batch_t *shared;

    for (int i = 0; i < 500; i++) {
        add_short(q, 1);
    }
    for (int i = 0; i < 20; i++) {
        add_short(q, 2);
    }
    add_short(q, 3);
    agent_batch_send_begin(q->batches, first_of(q));
    save_first(q, &agent_batch_operation, apr_time_from_sec(1),
               apr_time_from_sec(1));
    agent_batch_move_step(q->batches);
    assert_int_equal(count_dedicated(q->batches), 1);
    assert_memory_equal(last_batch(q->batches)->run_id,
                        q->fixture->leases[2]->key.run_id, 36);
    assert_false(
        agent_batch_size_is_dedicated(&q->fixture->leases[2]->batch_size, NOW));
    shared = agent_batch_send_first_shared(q->batches);
    assert_non_null(
        apr_hash_get(shared->runs, q->fixture->leases[3]->key.run_id, 36));
}

static void a_slow_dedicated_batch_shrinks_the_next_one_of_its_run_only(
    void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    add_long(q, 0);
    agent_batch_send_begin(q->batches, first_of(q));
    save_first(q, &agent_dedicated_batch_operation, apr_time_from_sec(1),
               apr_time_from_sec(1));
    assert_int_equal(agent_batch_size_limit(&q->fixture->leases[0]->batch_size),
                     AGENT_BATCH_SIZE_MIN);
    assert_int_equal(agent_batch_size_limit(&q->fixture->leases[1]->batch_size),
                     AGENT_BATCH_SIZE_FIRST);
}

static void a_slow_commit_neither_moves_a_run_nor_shrinks_a_batch(void **state)
{
    queue_t *q = make_queue(*state);

    for (int i = 0; i < 501; i++) {
        add_short(q, 1);
    }
    agent_batch_send_begin(q->batches, first_of(q));
    save_first(q, &agent_batch_operation, apr_time_from_sec(3), 1000);
    assert_int_equal(count_dedicated(q->batches), 0);
    assert_int_equal(agent_batch_size_limit(&q->batches->batch_size),
                     AGENT_BATCH_SIZE_MAX);
    add_long(q, 0);
    add_long(q, 0);
    agent_batch_send_begin(q->batches, last_batch(q->batches));
    save_first(q, &agent_dedicated_batch_operation, apr_time_from_sec(3), 1000);
    assert_int_equal(agent_batch_size_limit(&q->fixture->leases[0]->batch_size),
                     2 * AGENT_BATCH_SIZE_FIRST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(
            a_dedicated_batch_waits_for_the_earlier_shared_batch_of_its_run),
        CHECK_TEST(
            a_dedicated_batch_waits_for_a_shared_batch_of_its_run_in_flight),
        CHECK_TEST(a_dedicated_batch_waits_for_no_shared_batch_of_other_runs),
        CHECK_TEST(a_dedicated_batch_waits_for_no_output_that_was_dropped),
        CHECK_TEST(of_the_dedicated_batches_of_a_run_only_the_first_one_is_due),
        CHECK_TEST(shared_batches_are_sent_in_their_order),
        CHECK_TEST(a_worker_without_a_lease_saves_nothing),
        CHECK_TEST(after_a_time_out_of_several_lines_a_quarter_is_sent),
        CHECK_TEST(
            after_a_time_out_of_several_lines_at_most_half_of_them_are_sent),
        CHECK_TEST(a_line_alone_that_needs_more_than_a_second_gets_more),
        CHECK_TEST(time_outs_of_a_line_alone_count_under_the_longer_limit),
        CHECK_TEST(
            a_time_out_while_the_database_answers_nothing_does_not_count),
        CHECK_TEST(a_lost_connection_does_not_count),
        CHECK_TEST(
            a_line_alone_without_memory_counts_and_is_tried_again_after_10_s),
        CHECK_TEST(several_lines_without_memory_are_halved),
        CHECK_TEST(a_crash_of_the_process_that_stores_a_line_alone_counts),
        CHECK_TEST(
            a_crash_counts_when_the_connection_of_the_line_is_made_again),
        CHECK_TEST(a_crash_of_another_process_does_not_count),
        CHECK_TEST(a_crash_while_several_lines_are_stored_does_not_count),
        CHECK_TEST(lines_that_are_not_sent_have_no_part_of_a_slow_batch),
        CHECK_TEST(
            without_an_output_connection_dedicated_batches_use_the_bulk_one),
        CHECK_TEST(a_slow_shared_batch_gives_its_largest_run_dedicated_batches),
        CHECK_TEST(
            after_a_slow_shared_batch_other_runs_with_much_output_leave_too),
        CHECK_TEST(a_slow_dedicated_batch_shrinks_the_next_one_of_its_run_only),
        CHECK_TEST(a_slow_commit_neither_moves_a_run_nor_shrinks_a_batch),
    };

    return CHECK_RUN(tests);
}

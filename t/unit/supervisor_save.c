/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Which batch of output is sent next on each connection; see
 * supervisor/statement/save.h. */
#include "supervisor_answer.h"

#include "../../mod_agent/db/connection.h"
#include "../../mod_agent/supervisor/lease/batch_send.h"
#include "../../mod_agent/supervisor/lease/fair_queue.h"

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

static void a_dedicated_batch_waits_for_no_output_that_was_discarded(
    void **state)
{
    queue_t *q = make_queue(*state);

    add_short(q, 0);
    add_short(q, 1);
    agent_batch_discard(q->batches, q->fixture->leases[0]->key.run_id, 0, NULL);
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

/* It tells crashes of the line's process from others. */
static void dedicated_batches_wait_for_the_control_connection(void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    assert_true(is_dedicated_due(q));
    q->control.lost_at = NOW;
    assert_false(is_dedicated_due(q));
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

/* Its statement would be cancelled after a second, each second. */
static void a_line_that_needs_a_long_limit_waits_for_the_output_connection(
    void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    q->output.lost_at = NOW - apr_time_from_sec(5);
    q->fixture->leases[0]->batch_size.needs_long_limit = true;
    assert_true(due_on_bulk(q) == AGENT_CLOCK_NEVER);
    add_long(q, 1);
    assert_true(due_on_bulk(q) == NOW);
    q->output.lost_at = 0;
    assert_true(is_dedicated_due(q));
}

/* The first batch in flight is saved, with an answer after that time, in which
 * the database executed it for the other one. */
static void save_first(queue_t *q, const agent_operation_t *operation,
                       apr_interval_time_t used, apr_interval_time_t executed)
{
    q->fixture->runs->context->now += used;
    answer_first(q, operation, "", "fenced", executed);
}

/* If the database has lost the claim, the next one has the same epoch. */
static void output_after_that_of_a_lost_lease_is_discarded(void **state)
{
    queue_t *q = make_queue(*state);
    agent_lease_t *lease = q->fixture->leases[0];

    lease->state = AGENT_LEASE_GONE;
    add_long(q, 0);
    first_of(q)->is_sealed = true;
    agent_batch_send_begin(q->batches, first_of(q));
    add_long(q, 0);
    add_long(q, 1);
    agent_batch_discard(q->batches, lease->key.run_id, lease->key.epoch + 1,
                        NULL);
    assert_int_equal(count_dedicated(q->batches), 2);
    answer_first(q, &agent_dedicated_batch_operation, lease->key.run_id,
                 "fenced", 1000);
    assert_int_equal(count_dedicated(q->batches), 1);
    assert_memory_equal(first_of(q)->run_id, q->fixture->leases[1]->key.run_id,
                        36);
    /* This worker may have the run under another epoch. */
    assert_true(q->schedule.search_at == NOW);
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
    agent_batch_discard(q->batches, q->fixture->leases[0]->key.run_id, 0, NULL);
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

/* The run of which a dedicated batch is sent, without a connection of libpq. */
static char send_next(queue_t *q)
{
    agent_db_t db = {.prepared = apr_array_make(q->fixture->runs->context->pool,
                                                1, sizeof(void *))};
    agent_error_t *err;
    char run;

    q->output.db = &db;
    q->output.scratch = q->fixture->runs->context->pool;
    (agent_dedicated_batch_operation.send)(&q->save, &q->output, &err);
    run = *q->batches->sent_dedicated->run_id;
    agent_batch_send_fail(q->batches, q->batches->sent_dedicated, NOW);
    return run;
}

/* A long line for a dedicated batch. */
static void add_record(const queue_t *q, int run)
{
    apr_size_t length = AGENT_BATCH_LONG_LINE + 1;
    char *line = apr_palloc(q->fixture->runs->context->pool, length);

    memset(line, ' ', length);
    line[0] = '{';
    line[length - 1] = '}';
    agent_batch_add(q->batches, q->fixture->leases[run], AGENT_ITEM_RECORD,
                    line, length, 1);
}

/* Run 1 has used more of the connection. */
static void after_a_lost_connection_output_that_has_not_failed_is_sent_first(
    void **state)
{
    queue_t *q = make_logged(*state);

    add_record(q, 0);
    add_record(q, 1);
    fail_first(q, AGENT_FAILURE_LOST);
    first_of(q)->retry_at = NOW;
    agent_fair_queue_charge_time(
        agent_fair_queue_first_of(&q->batches->dedicated,
                                  q->fixture->leases[1]->key.run_id),
        apr_time_from_sec(1));
    assert_int_equal(send_next(q), '0');
    q->output.losses = 1;
    q->save.had_failed = true;
    assert_int_equal(send_next(q), '1');
    agent_batch_discard(q->batches, q->fixture->leases[1]->key.run_id, 0, NULL);
    assert_int_equal(send_next(q), '0');
}

/* The output connection is lost with that run's first batch, which is due again
 * at once. */
static void lose_next(queue_t *q, int run)
{
    agent_batch_t *batch = agent_fair_queue_first_of(
        &q->batches->dedicated, q->fixture->leases[run]->key.run_id);

    agent_batch_send_begin(q->batches, batch);
    q->output.lost_at = NOW;
    q->output.crash_reported_at = NOW;
    q->output.losses++;
    (agent_dedicated_batch_operation.fail)(&q->save, AGENT_FAILURE_LOST);
    q->output.lost_at = 0;
    agent_save_failure_on_connected(&q->save);
    batch->retry_at = NOW;
}

/* As when each line of a runner ends its connection. */
static void new_output_that_is_lost_keeps_back_none_that_was_lost_before(
    void **state)
{
    queue_t *q = make_logged(*state);

    for (int i = 0; i < 3; i++) {
        add_record(q, i);
    }
    lose_next(q, 0);
    lose_next(q, 1);
    agent_fair_queue_charge_time(
        agent_fair_queue_first_of(&q->batches->dedicated,
                                  q->fixture->leases[2]->key.run_id),
        apr_time_from_sec(1));
    assert_int_not_equal(send_next(q), '2');
    lose_next(q, 0);
    assert_int_equal(send_next(q), '2');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(
            a_dedicated_batch_waits_for_the_earlier_shared_batch_of_its_run),
        CHECK_TEST(
            a_dedicated_batch_waits_for_a_shared_batch_of_its_run_in_flight),
        CHECK_TEST(a_dedicated_batch_waits_for_no_shared_batch_of_other_runs),
        CHECK_TEST(a_dedicated_batch_waits_for_no_output_that_was_discarded),
        CHECK_TEST(of_the_dedicated_batches_of_a_run_only_the_first_one_is_due),
        CHECK_TEST(shared_batches_are_sent_in_their_order),
        CHECK_TEST(a_worker_without_a_lease_saves_nothing),
        CHECK_TEST(lines_that_are_not_sent_have_no_part_of_a_slow_batch),
        CHECK_TEST(dedicated_batches_wait_for_the_control_connection),
        CHECK_TEST(
            without_an_output_connection_dedicated_batches_use_the_bulk_one),
        CHECK_TEST(
            a_line_that_needs_a_long_limit_waits_for_the_output_connection),
        CHECK_TEST(a_slow_shared_batch_gives_its_largest_run_dedicated_batches),
        CHECK_TEST(
            after_a_slow_shared_batch_other_runs_with_much_output_leave_too),
        CHECK_TEST(a_slow_dedicated_batch_shrinks_the_next_one_of_its_run_only),
        CHECK_TEST(a_slow_commit_neither_moves_a_run_nor_shrinks_a_batch),
        CHECK_TEST(output_after_that_of_a_lost_lease_is_discarded),
        CHECK_TEST(
            after_a_lost_connection_output_that_has_not_failed_is_sent_first),
        CHECK_TEST(
            new_output_that_is_lost_keeps_back_none_that_was_lost_before),
    };

    return CHECK_RUN(tests);
}

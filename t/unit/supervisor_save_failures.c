/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Statements that do not save the output, and the end of its run; see
 * supervisor/statement/save_failure.h. */
#include "supervisor_queue.h"

/* The row of one of its runs is locked; the output of the others is saved. */
static void a_shared_batch_that_waits_for_a_lock_is_split(void **state)
{
    queue_t *q = make_logged(*state);

    add_short(q, 0);
    add_short(q, 1);
    agent_batch_send_begin(q->batches, first_of(q));
    (agent_batch_operation.fail)(&q->save, AGENT_FAILURE_LOCK);
    assert_int_equal(agent_batch_operation.due(&q->save), AGENT_CLOCK_NEVER);
    assert_true(agent_dedicated_batch_operation.due(&q->save)
                < AGENT_CLOCK_NEVER);
    assert_int_equal(first_of(q)->failures, 0);
}

/* Of many locked runs each delays the others a little. */
static void after_a_wait_for_a_lock_a_run_waits_briefly_until_it_is_saved(
    void **state)
{
    queue_t *q = make_logged(*state);
    agent_runs_t *runs = q->fixture->runs;
    agent_batch_size_t *size = &q->fixture->leases[0]->batch_size;

    add_short(q, 0);
    add_short(q, 0);
    add_short(q, 1);
    agent_batch_send_begin(q->batches, first_of(q));
    (agent_batch_operation.fail)(&q->save, AGENT_FAILURE_LOCK);
    assert_int_equal(size->lock_waits, 1);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(agent_save_lock_limit(runs, first_of(q)),
                         AGENT_SAVE_BRIEF_LOCK);
        fail_first(q, AGENT_FAILURE_LOCK);
        assert_int_equal(first_of(q)->failures, 0);
    }
    agent_batch_size_save(size, 1, 1000);
    assert_int_equal(agent_save_lock_limit(runs, first_of(q)),
                     AGENT_BATCH_SIZE_TIMEOUT / 2);
}

static void a_long_line_that_waits_for_a_lock_waits_longer_in_between(
    void **state)
{
    queue_t *q = make_logged(*state);
    apr_interval_time_t pause = apr_time_from_msec(50);

    add_long(q, 0);
    for (int i = 0; i < 9; i++) {
        fail_first(q, AGENT_FAILURE_LOCK);
        assert_int_equal(agent_save_lock_limit(q->fixture->runs, first_of(q)),
                         AGENT_SAVE_BRIEF_LOCK);
        assert_true(first_of(q)->retry_at >= NOW + pause * 4 / 5);
        assert_true(first_of(q)->retry_at <= NOW + pause * 6 / 5);
        pause = AGENT_MIN(2 * pause, apr_time_from_sec(1));
    }
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
    q->fixture->runs->context->now += agent_save_limit(q->batches->context,
                                                       first_of(q));
    (agent_dedicated_batch_operation.fail)(&q->save, AGENT_FAILURE_TIMEOUT);
    assert_int_equal(first_of(q)->failures, 0);
}

/* An operator did it, or a tool that ends long statements. */
static void a_cancel_before_the_limit_of_the_statement_is_no_time_out(
    void **state)
{
    queue_t *q = make_logged(*state);
    const agent_lease_t *lease = q->fixture->leases[0];

    add_long(q, 0);
    for (int i = 0; i < 3; i++) {
        fail_first(q, AGENT_FAILURE_CANCEL);
        assert_false(agent_save_needs_long_limit(lease));
    }
    fail_first(q, AGENT_FAILURE_TIMEOUT);
    assert_true(agent_save_needs_long_limit(lease));
    for (int i = 0; i < 3; i++) {
        fail_first(q, AGENT_FAILURE_CANCEL);
        assert_int_equal(first_of(q)->failures, 0);
    }
    fail_first(q, AGENT_FAILURE_TIMEOUT);
    assert_int_equal(first_of(q)->failures, 1);
}

/* Else a tool that ends long statements stops the output of all runs while one
 * of them has a costly line. */
static void a_shared_batch_that_is_cancelled_is_split(void **state)
{
    queue_t *q = make_logged(*state);

    q->fixture->runs->context->timing.statement = apr_time_from_sec(5);
    add_short(q, 0);
    add_short(q, 1);
    agent_batch_send_begin(q->batches, first_of(q));
    q->fixture->runs->context->now += apr_time_from_sec(2);
    (agent_batch_operation.fail)(&q->save, AGENT_FAILURE_CANCEL);
    q->fixture->runs->context->now = NOW;
    assert_int_equal(count_dedicated(q->batches), 2);
    assert_int_equal(first_of(q)->failures, 0);
}

static void several_lines_that_are_cancelled_are_halved(void **state)
{
    queue_t *q = make_logged(*state);
    agent_lease_t *lease = q->fixture->leases[0];

    for (int i = 0; i < 8; i++) {
        add_long(q, 0);
    }
    fail_first(q, AGENT_FAILURE_CANCEL);
    assert_int_equal(agent_batch_size_limit(&lease->batch_size),
                     first_of(q)->cost / 2);
}

/* Other runs are saved. */
static void a_line_alone_that_is_cancelled_waits_longer_each_time(void **state)
{
    queue_t *q = make_logged(*state);
    int pause_sec = 1;

    add_long(q, 0);
    for (int i = 0; i < 9; i++) {
        fail_first(q, AGENT_FAILURE_CANCEL);
        assert_true(first_of(q)->retry_at
                    >= NOW + apr_time_from_msec(800) * pause_sec);
        assert_true(first_of(q)->retry_at <= NOW + apr_time_from_sec(36));
        pause_sec = pause_sec < 16 ? 2 * pause_sec : 30;
    }
    add_long(q, 1);
    assert_true(is_dedicated_due(q));
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
    queue_t *q = make_logged(*state);

    add_long(q, 0);
    for (int i = 1; i < 3; i++) {
        q->save.saved_runs++;
        fail_first(q, AGENT_FAILURE_SHORTAGE);
        assert_int_equal(first_of(q)->failures, i);
        assert_true(first_of(q)->retry_at >= NOW + apr_time_from_sec(8));
    }
}

static void without_memory_for_any_output_no_run_ends(void **state)
{
    queue_t *q = make_logged(*state);

    add_long(q, 0);
    q->save.saved_runs++;
    for (int i = 0; i < 9; i++) {
        fail_first(q, AGENT_FAILURE_SHORTAGE);
        assert_int_equal(first_of(q)->failures, 1);
        assert_true(first_of(q)->retry_at <= NOW + apr_time_from_sec(36));
    }
    q->save.saved_runs++;
    fail_first(q, AGENT_FAILURE_SHORTAGE);
    assert_int_equal(first_of(q)->failures, 2);
}

static void several_lines_without_memory_are_halved(void **state)
{
    queue_t *q = make_queue(*state);
    const agent_lease_t *lease = q->fixture->leases[0];

    for (int i = 0; i < 8; i++) {
        add_long(q, 0);
    }
    fail_first(q, AGENT_FAILURE_SHORTAGE);
    assert_int_equal(first_of(q)->failures, 0);
    assert_int_equal(agent_batch_size_limit(&lease->batch_size),
                     first_of(q)->cost / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_shared_batch_that_waits_for_a_lock_is_split),
        CHECK_TEST(
            after_a_wait_for_a_lock_a_run_waits_briefly_until_it_is_saved),
        CHECK_TEST(a_long_line_that_waits_for_a_lock_waits_longer_in_between),
        CHECK_TEST(after_a_time_out_of_several_lines_a_quarter_is_sent),
        CHECK_TEST(
            after_a_time_out_of_several_lines_at_most_half_of_them_are_sent),
        CHECK_TEST(a_line_alone_that_needs_more_than_a_second_gets_more),
        CHECK_TEST(time_outs_of_a_line_alone_count_under_the_longer_limit),
        CHECK_TEST(
            a_time_out_while_the_database_answers_nothing_does_not_count),
        CHECK_TEST(a_cancel_before_the_limit_of_the_statement_is_no_time_out),
        CHECK_TEST(a_shared_batch_that_is_cancelled_is_split),
        CHECK_TEST(several_lines_that_are_cancelled_are_halved),
        CHECK_TEST(a_line_alone_that_is_cancelled_waits_longer_each_time),
        CHECK_TEST(a_lost_connection_does_not_count),
        CHECK_TEST(
            a_line_alone_without_memory_counts_and_is_tried_again_after_10_s),
        CHECK_TEST(without_memory_for_any_output_no_run_ends),
        CHECK_TEST(several_lines_without_memory_are_halved),
    };

    return CHECK_RUN(tests);
}

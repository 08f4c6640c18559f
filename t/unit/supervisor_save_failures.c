/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Statements that do not save the output, and the end of its run; see
 * supervisor/statement/save_failure.h. */
#include "supervisor_queue.h"

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

/* It fails after that time. (cmocka has a macro fail().) */
static void fail_sent(queue_t *q, agent_failure_t failure,
                      apr_interval_time_t used)
{
    agent_context_t *context = q->fixture->runs->context;

    q->control.answered_at = NOW + 1;
    context->now += used;
    (agent_dedicated_batch_operation.fail)(&q->save, failure);
    context->now = NOW;
}

/* It is sent, and fails: at once, or after its limit. */
static void fail_first(queue_t *q, agent_failure_t failure)
{
    send_first(q);
    fail_sent(q, failure,
              failure == AGENT_FAILURE_TIMEOUT
                  ? agent_save_limit(q->batches->context, first_of(q))
                  : 0);
}

static void ignore_report(void *baton, agent_log_level_t level, const char *id,
                          apr_status_t rv, const char *text)
{
}

/* A queue of which the log is ignored. */
static queue_t *make_logged(apr_pool_t *pool)
{
    static const agent_supervisor_config_t config = {
        .log = {ignore_report, NULL}};
    queue_t *q = make_queue(pool);

    q->fixture->runs->context->config = &config;
    return q;
}

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

/* Of many locked runs each delays the others once. */
static void after_a_wait_for_a_lock_each_run_first_waits_briefly(void **state)
{
    queue_t *q = make_logged(*state);
    agent_runs_t *runs = q->fixture->runs;

    add_short(q, 0);
    add_short(q, 1);
    agent_batch_send_begin(q->batches, first_of(q));
    (agent_batch_operation.fail)(&q->save, AGENT_FAILURE_LOCK);
    assert_int_equal(agent_save_lock_limit(runs, first_of(q)),
                     AGENT_SAVE_FIRST_LOCK);
    fail_first(q, AGENT_FAILURE_LOCK);
    assert_int_equal(agent_save_lock_limit(runs, first_of(q)),
                     AGENT_BATCH_SIZE_TIMEOUT / 2);
    assert_true(q->fixture->leases[1]->batch_size.may_be_locked);
    agent_batch_size_save(&q->fixture->leases[1]->batch_size, 1, 1000);
    assert_false(q->fixture->leases[1]->batch_size.may_be_locked);
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

/* The connection of the first batch is lost, perhaps with the notice of a
 * crash; so is the control connection. */
static void lose_first(queue_t *q, bool has_notice, bool has_output_notice)
{
    q->output.crash_reported_at = has_output_notice ? NOW : 0;
    fail_first(q, AGENT_FAILURE_LOST);
    q->control.crash_reported_at = has_notice ? NOW : 0;
    agent_save_failure_on_connected(&q->save);
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
    agent_save_failure_on_connected(&q->save);
    assert_int_equal(first_of(q)->failures, 2);
}

/* The control connection may be reset while it sends. */
static void a_crash_counts_when_any_connection_gets_its_notice(void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    q->bulk.crash_reported_at = NOW - 1;
    lose_first(q, false, false);
    assert_int_equal(first_of(q)->failures, 0);
    q->bulk.crash_reported_at = NOW;
    agent_save_failure_on_connected(&q->save);
    assert_int_equal(first_of(q)->failures, 1);
}

/* The connection of the line may be made again before that. */
static void a_crash_counts_when_the_control_connection_gets_its_notice(
    void **state)
{
    queue_t *q = make_queue(*state);

    add_long(q, 0);
    fail_first(q, AGENT_FAILURE_LOST);
    agent_save_failure_on_connected(&q->save);
    assert_int_equal(first_of(q)->failures, 0);
    lose_first(q, true, true);
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

/* Each of them may be the one at fault. */
static void lines_that_crashed_the_database_together_are_sent_alone(
    void **state)
{
    queue_t *q = make_queue(*state);
    agent_batch_size_t *size = &q->fixture->leases[0]->batch_size;

    for (int i = 0; i < 4; i++) {
        add_long(q, 0);
    }
    lose_first(q, true, true);
    assert_true(agent_batch_size_limit(size) > 1);
    lose_first(q, true, false);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(agent_batch_size_limit(size), 1);
        agent_batch_size_save(size, AGENT_BATCH_LONG_LINE, 1000);
    }
    assert_true(agent_batch_size_limit(size) > AGENT_BATCH_LONG_LINE);
}

/* A queue with a shared batch of two runs. */
static queue_t *make_shared(apr_pool_t *pool)
{
    queue_t *q = make_logged(pool);

    add_short(q, 0);
    add_short(q, 1);
    return q;
}

/* The control connection is lost with the shared batch, perhaps with the notice
 * of a crash, and made again; so are others. */
static void lose_shared(queue_t *q, bool has_notice, bool has_other_notice)
{
    agent_batch_send_begin(q->batches, first_of(q));
    q->control.crash_reported_at = has_notice ? NOW : 0;
    q->bulk.crash_reported_at = has_other_notice ? NOW : 0;
    (agent_batch_operation.fail)(&q->save, AGENT_FAILURE_LOST);
    agent_save_failure_on_connected(&q->save);
}

static void a_shared_batch_that_crashed_its_process_is_split_at_once(
    void **state)
{
    queue_t *q = make_shared(*state);

    lose_shared(q, false, true);
    assert_int_equal(count_dedicated(q->batches), 2);
}

static void a_shared_batch_that_was_lost_in_the_crash_of_another_is_kept(
    void **state)
{
    queue_t *q = make_shared(*state);

    for (int i = 0; i < 9; i++) {
        lose_shared(q, true, true);
    }
    assert_int_equal(count_dedicated(q->batches), 0);
}

/* The control connection is made again before the server notices the crash. */
static void a_shared_batch_that_crashed_is_split_when_others_get_the_notice(
    void **state)
{
    queue_t *q = make_shared(*state);

    lose_shared(q, false, false);
    assert_int_equal(count_dedicated(q->batches), 0);
    lose_shared(q, true, true);
    assert_int_equal(count_dedicated(q->batches), 2);
}

static void a_shared_batch_that_was_lost_without_a_crash_is_split_after_three(
    void **state)
{
    queue_t *q = make_shared(*state);

    for (int i = 0; i < 3; i++) {
        assert_int_equal(count_dedicated(q->batches), 0);
        lose_shared(q, false, false);
    }
    assert_int_equal(count_dedicated(q->batches), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_shared_batch_that_waits_for_a_lock_is_split),
        CHECK_TEST(after_a_wait_for_a_lock_each_run_first_waits_briefly),
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
        CHECK_TEST(a_crash_of_the_process_that_stores_a_line_alone_counts),
        CHECK_TEST(a_crash_counts_when_any_connection_gets_its_notice),
        CHECK_TEST(a_crash_counts_when_the_control_connection_gets_its_notice),
        CHECK_TEST(a_crash_of_another_process_does_not_count),
        CHECK_TEST(a_crash_while_several_lines_are_stored_does_not_count),
        CHECK_TEST(lines_that_crashed_the_database_together_are_sent_alone),
        CHECK_TEST(a_shared_batch_that_crashed_its_process_is_split_at_once),
        CHECK_TEST(
            a_shared_batch_that_was_lost_in_the_crash_of_another_is_kept),
        CHECK_TEST(
            a_shared_batch_that_crashed_is_split_when_others_get_the_notice),
        CHECK_TEST(
            a_shared_batch_that_was_lost_without_a_crash_is_split_after_three),
    };

    return CHECK_RUN(tests);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Statements that do not save the output, and the end of its run; see
 * supervisor/statement/save_failure.h. */
#include "supervisor_queue.h"

/* It is sent at that time, and lacks resources. */
static void starve_at(queue_t *q, apr_time_t time)
{
    agent_context_t *context = q->fixture->runs->context;

    send_first(q);
    q->batches->sent_dedicated->sent_at = time;
    context->now = time;
    (agent_dedicated_batch_operation.fail)(&q->save, AGENT_FAILURE_SHORTAGE);
    context->now = NOW;
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
    queue_t *q = make_logged(*state);
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
    queue_t *q = make_logged(*state);
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
    queue_t *q = make_logged(*state);
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
    queue_t *q = make_logged(*state);

    add_long(q, 0);
    for (int i = 0; i < 3; i++) {
        fail_first(q, AGENT_FAILURE_TIMEOUT);
        assert_int_equal(first_of(q)->failures, i);
    }
}

static void a_time_out_while_the_database_answers_nothing_does_not_count(
    void **state)
{
    queue_t *q = make_logged(*state);

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

/* A line that ends its connection each time holds up others less and less. */
static void a_lost_connection_does_not_count(void **state)
{
    queue_t *q = make_logged(*state);

    add_long(q, 0);
    fail_first(q, AGENT_FAILURE_LOST);
    assert_true(first_of(q)->retry_at <= NOW + apr_time_from_msec(1200));
    for (int i = 1; i < 12; i++) {
        fail_first(q, AGENT_FAILURE_LOST);
        assert_int_equal(first_of(q)->failures, 0);
        assert_true(first_of(q)->retry_at <= NOW + apr_time_from_sec(36));
    }
    assert_true(first_of(q)->retry_at >= NOW + apr_time_from_sec(24));
}

/* Such as one whose lease was lost while the database was out of reach. */
static void a_run_that_waits_to_be_requeued_ends_by_its_output(void **state)
{
    queue_t *q = make_logged(*state);
    agent_runs_t *runs = q->fixture->runs;
    agent_lease_t *lease = q->fixture->leases[0];

    add_long(q, 0);
    agent_release_init(&runs->releases, runs->context);
    agent_release_add(&runs->releases, lease, false, "a loss");
    lease->state = AGENT_LEASE_RELEASING;
    fail_first(q, AGENT_FAILURE_DATA);
    assert_int_equal(lease->state, AGENT_LEASE_RELEASING);
    assert_non_null(agent_release_find(&runs->releases, &lease->key)->error);
}

/* It fails with an error that ends the connection each time. */
static void other_errors_of_a_line_alone_count(void **state)
{
    queue_t *q = make_logged(*state);

    add_long(q, 0);
    for (int i = 1; i < 3; i++) {
        fail_first(q, AGENT_FAILURE_OTHER);
        assert_int_equal(first_of(q)->failures, i);
    }
    fail_first(q, AGENT_FAILURE_OTHER);
    assert_true(q->fixture->leases[0]->is_refused);
}

static void a_missing_schema_does_not_count(void **state)
{
    queue_t *q = make_logged(*state);

    add_long(q, 0);
    for (int i = 0; i < 9; i++) {
        fail_first(q, AGENT_FAILURE_SETUP);
        assert_int_equal(first_of(q)->failures, 0);
    }
}

/* A line of another run, as long as the first one, was saved at that time. */
static void save_other(queue_t *q, apr_time_t time)
{
    agent_patience_save(&q->save.saved, first_of(q)->cost, time);
}

/* Statements with the first line lack resources every 10 s; output of others is
 * saved between those of which the number is at most others_until. Returns
 * after how many its run is refused. */
static int count_shortages(queue_t *q, int others_until)
{
    int count = 0;

    add_long(q, 0);
    while (!q->fixture->leases[0]->is_refused) {
        apr_time_t time = NOW + apr_time_from_sec(10) * count;

        if (count <= others_until) {
            save_other(q, time - 1);
        }
        starve_at(q, time);
        count++;
    }
    return count;
}

static void a_line_that_lacks_resources_alone_ends_its_run_after_its_patience(
    void **state)
{
    queue_t *q = make_logged(*state);

    assert_int_equal(count_shortages(q, 1000), 1 + 300 / 10);
}

/* The server lacks them, perhaps not all the time. */
static void without_resources_for_any_output_a_run_ends_after_an_hour(
    void **state)
{
    queue_t *q = make_logged(*state);

    assert_int_equal(count_shortages(q, 300 / 10 - 1), 1 + 3600 / 10);
}

/* Its connection waited for others in between. */
static void a_few_attempts_far_apart_end_no_run(void **state)
{
    queue_t *q = make_logged(*state);

    add_long(q, 0);
    for (int i = 0; i < 10; i++) {
        apr_time_t time = NOW + apr_time_from_sec(100) * i;

        save_other(q, time - 1);
        starve_at(q, time);
    }
    assert_false(q->fixture->leases[0]->is_refused);
}

/* The same server runs out of memory for a moment, or of transactions. */
static void failures_outside_of_a_line_alone_do_not_count_at_once(void **state)
{
    static const agent_failure_t failures[] = {
        AGENT_FAILURE_RETRY, AGENT_FAILURE_CANCEL, AGENT_FAILURE_SHORTAGE};

    for (int i = 0; i < 3; i++) {
        queue_t *q = make_logged(*state);

        add_long(q, 0);
        for (int attempt = 0; attempt < 9; attempt++) {
            save_other(q, NOW + 1);
            fail_first(q, failures[i]);
            assert_int_equal(first_of(q)->failures, 0);
            assert_true(first_of(q)->retry_at <= NOW + apr_time_from_sec(36));
        }
    }
}

/* Two that lack resources, the second one for longer. */
static queue_t *make_starved(apr_pool_t *pool)
{
    queue_t *q = make_logged(pool);

    add_long(q, 0);
    fail_first(q, AGENT_FAILURE_SHORTAGE);
    add_long(q, 1);
    (agent_batch_send_begin)(
        q->batches,
        agent_fair_queue_first_of(&q->batches->dedicated,
                                  q->fixture->leases[1]->key.run_id));
    fail_sent(q, AGENT_FAILURE_SHORTAGE, 0);
    assert_false(is_dedicated_due(q));
    return q;
}

static void lines_that_lacked_resources_become_due_one_by_one(void **state)
{
    queue_t *q = make_starved(*state);

    agent_batch_send_hasten(q->batches, AGENT_BATCH_LONG_LINE / 2);
    assert_false(is_dedicated_due(q));
    for (int i = 0; i < 2; i++) {
        agent_batch_t *due;

        agent_batch_send_hasten(q->batches, AGENT_BATCH_SIZE_FIRST);
        assert_true(is_dedicated_due(q));
        due = agent_batch_send_next_dedicated(q->batches);
        due->retry_at = AGENT_CLOCK_NEVER;
        assert_false(is_dedicated_due(q));
    }
    agent_batch_send_hasten(q->batches, AGENT_BATCH_SIZE_FIRST);
    assert_false(is_dedicated_due(q));
}

static void a_line_that_was_cancelled_is_not_sent_earlier(void **state)
{
    queue_t *q = make_logged(*state);

    add_long(q, 0);
    fail_first(q, AGENT_FAILURE_CANCEL);
    agent_batch_send_hasten(q->batches, AGENT_BATCH_SIZE_FIRST);
    assert_false(is_dedicated_due(q));
}

static void several_lines_without_resources_are_halved(void **state)
{
    queue_t *q = make_logged(*state);
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
        CHECK_TEST(a_run_that_waits_to_be_requeued_ends_by_its_output),
        CHECK_TEST(other_errors_of_a_line_alone_count),
        CHECK_TEST(a_missing_schema_does_not_count),
        CHECK_TEST(
            a_line_that_lacks_resources_alone_ends_its_run_after_its_patience),
        CHECK_TEST(without_resources_for_any_output_a_run_ends_after_an_hour),
        CHECK_TEST(a_few_attempts_far_apart_end_no_run),
        CHECK_TEST(failures_outside_of_a_line_alone_do_not_count_at_once),
        CHECK_TEST(lines_that_lacked_resources_become_due_one_by_one),
        CHECK_TEST(a_line_that_was_cancelled_is_not_sent_earlier),
        CHECK_TEST(several_lines_without_resources_are_halved),
    };

    return CHECK_RUN(tests);
}

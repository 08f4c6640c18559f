/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Statements during which the database crashes, or the connection is lost; see
 * supervisor/statement/save_failure.h. */
#include "supervisor_queue.h"

#include <apr_strings.h>

#include "../../mod_agent/supervisor/lease/batch_send.h"

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
    queue_t *q = make_logged(*state);

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
    queue_t *q = make_logged(*state);

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
    queue_t *q = make_logged(*state);

    add_long(q, 0);
    fail_first(q, AGENT_FAILURE_LOST);
    agent_save_failure_on_connected(&q->save);
    assert_int_equal(first_of(q)->failures, 0);
    lose_first(q, true, true);
    assert_int_equal(first_of(q)->failures, 1);
}

static void a_crash_of_another_process_does_not_count(void **state)
{
    queue_t *q = make_logged(*state);

    add_long(q, 0);
    lose_first(q, true, true);
    assert_int_equal(first_of(q)->failures, 0);
}

static void a_crash_while_several_lines_are_stored_does_not_count(void **state)
{
    queue_t *q = make_logged(*state);

    add_long(q, 0);
    add_long(q, 0);
    lose_first(q, true, false);
    assert_int_equal(first_of(q)->failures, 0);
}

/* Each of them may be the one at fault. */
static void lines_that_crashed_the_database_together_are_sent_alone(
    void **state)
{
    queue_t *q = make_logged(*state);
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

/* A line of run 0 ends its connection, which is made again after that time.
 * Returns how many attempts of run 1, of 100 ms each, precede the next one. */
static int count_attempts(queue_t *q, apr_interval_time_t reconnect)
{
    apr_time_t *now = &q->fixture->runs->context->now;
    int attempts = 0;

    apr_cpystrn(q->fixture->leases[1]->deployment_id, "other", AGENT_UUID_SIZE);
    add_long(q, 0);
    add_long(q, 1);
    send_first(q);
    q->output.lost_at = NOW;
    fail_sent(q, AGENT_FAILURE_RETRY, 0);
    first_of(q)->retry_at = 0;
    /* The control connection is made again earlier. */
    agent_save_failure_on_connected(&q->save);
    *now += reconnect;
    q->output.lost_at = 0;
    agent_save_failure_on_connected(&q->save);
    agent_save_failure_on_connected(&q->save);
    while (agent_batch_send_next_dedicated(q->batches) != first_of(q)) {
        agent_batch_t *batch = agent_batch_send_next_dedicated(q->batches);

        agent_batch_send_begin(q->batches, batch);
        *now += apr_time_from_msec(100);
        agent_batch_send_fail(q->batches, batch, 0);
        attempts++;
    }
    return attempts;
}

static void the_time_in_which_a_connection_is_made_again_is_charged(
    void **state)
{
    assert_int_equal(count_attempts(make_logged(*state), 0), 1);
    assert_int_equal(
        count_attempts(make_logged(*state), apr_time_from_msec(750)), 8);
}

static void of_an_outage_a_second_is_charged(void **state)
{
    assert_int_equal(count_attempts(make_logged(*state), apr_time_from_sec(60)),
                     11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        CHECK_TEST(the_time_in_which_a_connection_is_made_again_is_charged),
        CHECK_TEST(of_an_outage_a_second_is_charged),
    };

    return CHECK_RUN(tests);
}

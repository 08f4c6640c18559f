/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Deployments whose output fails; see supervisor/lease/faulty.h. */
#include "supervisor_queue.h"

#include "../../mod_agent/supervisor/lease/batch_move.h"

#include <apr_strings.h>

#define MARK apr_time_from_sec(30)

/* A queue whose run 1 is of another deployment than the others. */
static queue_t *make(apr_pool_t *pool)
{
    queue_t *q = make_logged(pool);

    apr_cpystrn(q->fixture->leases[1]->deployment_id, "other", AGENT_UUID_SIZE);
    return q;
}

static agent_faulty_table_t *faulty_of(const queue_t *q)
{
    return &q->batches->faulty;
}

static const char *deployment(const queue_t *q, int run)
{
    return q->fixture->leases[run]->deployment_id;
}

static bool is_faulty(const queue_t *q, int run)
{
    return agent_faulty_is(faulty_of(q), deployment(q, run));
}

static void mark(const queue_t *q, int run)
{
    agent_faulty_fail(faulty_of(q), deployment(q, run),
                      q->fixture->runs->context->now, 1, "");
}

static void advance(const queue_t *q, apr_interval_time_t time)
{
    q->fixture->runs->context->now += time;
}

static void a_mark_lasts_for_half_a_minute_after_the_last_failure(void **state)
{
    queue_t *q = make(*state);

    mark(q, 0);
    advance(q, MARK - 1);
    mark(q, 0);
    advance(q, MARK - 1);
    assert_true(is_faulty(q, 0));
    assert_false(is_faulty(q, 1));
    advance(q, 1);
    assert_false(is_faulty(q, 0));
}

/* Returns for how long the deployment of run 0 is marked. */
static apr_interval_time_t measure(const queue_t *q)
{
    apr_time_t begin = q->fixture->runs->context->now;

    mark(q, 0);
    while (is_faulty(q, 0)) {
        advance(q, MARK);
    }
    return q->fixture->runs->context->now - begin;
}

static void failures_soon_after_a_mark_double_it_up_to_an_hour(void **state)
{
    queue_t *q = make(*state);

    assert_int_equal(measure(q), MARK);
    assert_int_equal(measure(q), 2 * MARK);
    advance(q, MARK);
    assert_int_equal(measure(q), 4 * MARK);
    for (int i = 0; i < 9; i++) {
        measure(q);
    }
    assert_int_equal(measure(q), apr_time_from_sec(3600));
    advance(q, apr_time_from_sec(3600));
    assert_int_equal(measure(q), MARK);
}

static void lines_of_a_marked_deployment_share_no_batch(void **state)
{
    queue_t *q = make(*state);

    add_short(q, 0);
    add_short(q, 1);
    assert_string_equal(describe(q->fixture), " s2");
    mark(q, 0);
    agent_batch_move_step(q->batches);
    assert_string_equal(describe(q->fixture), " s2 d1");
    assert_int_equal(first_of(q)->remaining, 1);
    add_short(q, 0);
    assert_string_equal(describe(q->fixture), " s2 d2");
}

/* The number of failures of lines alone, each in its own split of a shared
 * batch, that mark a deployment; 0: more than three. */
static int count_until_marked(apr_pool_t *pool, agent_failure_t failure,
                              apr_interval_time_t between)
{
    queue_t *q = make(pool);

    for (int i = 1; i <= 3; i++) {
        agent_batch_t *batch;

        faulty_of(q)->splits++;
        add_long(q, 0);
        batch = first_of(q);
        agent_batch_send_begin(q->batches, batch);
        batch->has_long_limit = true;
        q->control.answered_at = q->fixture->runs->context->now + 1;
        (agent_dedicated_batch_operation.fail)(&q->save, failure);
        if (is_faulty(q, 0)) {
            return i;
        }
        agent_batch_discard(q->batches, q->fixture->leases[0]->key.run_id, 0,
                            NULL);
        q->fixture->leases[0]->is_refused = false;
        advance(q, between);
    }
    return 0;
}

static void failures_in_a_row_mark_a_deployment_others_do_not(void **state)
{
    static const agent_failure_t nobody[] = {
        AGENT_FAILURE_LOCK, AGENT_FAILURE_SETUP, AGENT_FAILURE_RETRY,
        AGENT_FAILURE_CANCEL, AGENT_FAILURE_SHORTAGE};

    assert_int_equal(count_until_marked(*state, AGENT_FAILURE_OTHER, 1), 2);
    assert_int_equal(count_until_marked(*state, AGENT_FAILURE_TIMEOUT, 1), 2);
    assert_int_equal(count_until_marked(*state, AGENT_FAILURE_OTHER, MARK), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(count_until_marked(*state, nobody[i], 1), 0);
    }
}

static void the_third_shared_batch_that_a_refusal_split_marks(void **state)
{
    assert_int_equal(count_until_marked(*state, AGENT_FAILURE_DATA, 1), 3);
    assert_int_equal(
        count_until_marked(*state, AGENT_FAILURE_STATE_LENGTH, MARK / 3), 3);
    assert_int_equal(
        count_until_marked(*state, AGENT_FAILURE_STATE_LENGTH, MARK / 2), 0);
}

static void refuse(const queue_t *q)
{
    agent_faulty_refuse(faulty_of(q), deployment(q, 0),
                        q->fixture->runs->context->now, "");
}

static void refusals_that_split_no_shared_batch_mark_nobody(void **state)
{
    queue_t *q = make(*state);

    faulty_of(q)->splits = 1;
    for (int i = 0; i < 9; i++) {
        refuse(q);
    }
    assert_false(is_faulty(q, 0));
}

/* No more of its lines are in shared batches then. */
static void refusals_extend_a_mark_while_they_are_frequent(void **state)
{
    queue_t *q = make(*state);

    mark(q, 0);
    for (int i = 0; i < 6; i++) {
        advance(q, MARK / 4);
        refuse(q);
    }
    assert_true(is_faulty(q, 0));
    advance(q, MARK - 1);
    refuse(q);
    advance(q, 1);
    assert_false(is_faulty(q, 0));
}

static void one_slow_statement_marks_nobody(void **state)
{
    queue_t *q = make(*state);
    apr_time_t *now = &q->fixture->runs->context->now;

    agent_faulty_slow(faulty_of(q), deployment(q, 0), *now);
    assert_false(is_faulty(q, 0));
    agent_faulty_slow(faulty_of(q), deployment(q, 0), *now);
    assert_true(is_faulty(q, 0));
}

static void one_failure_of_each_kind_marks_nobody(void **state)
{
    queue_t *q = make(*state);
    apr_time_t *now = &q->fixture->runs->context->now;

    agent_faulty_slow(faulty_of(q), deployment(q, 0), *now);
    faulty_of(q)->splits++;
    refuse(q);
    agent_faulty_fail(faulty_of(q), deployment(q, 0), *now,
                      AGENT_FAULTY_FAILURES, "");
    assert_false(is_faulty(q, 0));
}

static void a_shortage_marks_a_deployment_while_others_have_none(void **state)
{
    queue_t *q = make(*state);

    q->fixture->runs->context->timing.patience = apr_time_from_sec(300);
    add_long(q, 0);
    fail_first(q, AGENT_FAILURE_SHORTAGE);
    advance(q, 2);
    agent_patience_save(&q->save.saved, AGENT_BATCH_SIZE_MAX, NOW + 1);
    for (int i = 0; i < 2; i++) {
        assert_false(is_faulty(q, 0));
        first_of(q)->retry_at = 0;
        agent_batch_send_begin(q->batches, first_of(q));
        advance(q, 1);
        (agent_dedicated_batch_operation.fail)(&q->save,
                                               AGENT_FAILURE_SHORTAGE);
    }
    assert_true(is_faulty(q, 0));
}

/* The output connection is lost, perhaps with the notice of a crash of another
 * process, and made again after that time. */
static void lose(queue_t *q, bool has_notice, apr_interval_time_t time)
{
    agent_context_t *context = q->fixture->runs->context;
    agent_batch_t *batch = agent_batch_send_next_dedicated(q->batches);

    agent_batch_send_begin(q->batches, batch);
    q->output.lost_at = context->now;
    q->output.losses++;
    q->output.crash_reported_at = has_notice ? context->now : 0;
    (agent_dedicated_batch_operation.fail)(&q->save, AGENT_FAILURE_LOST);
    advance(q, time);
    q->output.lost_at = 0;
    agent_save_failure_on_connected(&q->save);
}

/* How long no output is due. */
static apr_interval_time_t pause_of(queue_t *q)
{
    apr_time_t now = q->fixture->runs->context->now;
    apr_time_t due = agent_dedicated_batch_operation.due(&q->save);

    return AGENT_MAX(due, now) - now;
}

#define LOST apr_time_from_msec(200)

static queue_t *make_lines(apr_pool_t *pool)
{
    queue_t *q = make(pool);

    /* Two lines: they have no pauses of their own. */
    add_long(q, 0);
    add_long(q, 0);
    return q;
}

static void output_that_ends_its_connection_pauses_its_deployment(void **state)
{
    queue_t *q = make_lines(*state);

    lose(q, false, LOST);
    assert_int_equal(pause_of(q), 0);
    assert_false(is_faulty(q, 0));
    for (int i = 0; i < 6; i++) {
        lose(q, false, LOST);
        assert_int_equal(pause_of(q), LOST << AGENT_MIN(i, 4));
        add_long(q, 1);
        assert_int_equal(pause_of(q), 0);
        agent_batch_remove(q->batches,
                           agent_batch_send_next_dedicated(q->batches));
        advance(q, pause_of(q));
    }
    assert_true(is_faulty(q, 0));
    assert_false(is_faulty(q, 1));
}

static void losses_that_are_far_apart_mark_nobody(void **state)
{
    queue_t *q = make_lines(*state);

    for (int i = 0; i < 6; i++) {
        lose(q, false, LOST);
        assert_false(is_faulty(q, 0));
        advance(q, MARK);
    }
}

static void a_crash_of_another_process_pauses_no_deployment(void **state)
{
    queue_t *q = make_lines(*state);

    for (int i = 0; i < 6; i++) {
        lose(q, true, LOST);
        assert_int_equal(pause_of(q), 0);
        assert_false(is_faulty(q, 0));
    }
}

/* The control connection is lost too, and made again. */
static void a_restart_marks_nobody(void **state)
{
    queue_t *q = make_lines(*state);
    apr_time_t *now = &q->fixture->runs->context->now;

    for (int i = 0; i < 6; i++) {
        agent_batch_send_begin(q->batches,
                               agent_batch_send_next_dedicated(q->batches));
        q->output.lost_at = *now;
        (agent_dedicated_batch_operation.fail)(&q->save, AGENT_FAILURE_RETRY);
        assert_true(is_faulty(q, 0));
        q->control.connection++;
        advance(q, LOST);
        q->output.lost_at = 0;
        agent_save_failure_on_connected(&q->save);
        assert_false(is_faulty(q, 0));
        first_of(q)->retry_at = 0;
    }
}

/* The control connection has had the notice, and may be there first. */
static void a_crash_marks_whichever_connection_is_there_first(void **state)
{
    for (int i = 0; i < 2; i++) {
        queue_t *q = make_lines(*state);
        apr_time_t now = q->fixture->runs->context->now;
        apr_time_t *first = i == 0 ? &q->control.lost_at : &q->output.lost_at;

        agent_batch_send_begin(q->batches,
                               agent_batch_send_next_dedicated(q->batches));
        q->output.lost_at = now;
        q->control.lost_at = now;
        q->control.crash_reported_at = now;
        (agent_dedicated_batch_operation.fail)(&q->save, AGENT_FAILURE_LOST);
        assert_true(is_faulty(q, 0));
        q->control.connection++;
        *first = 0;
        agent_save_failure_on_connected(&q->save);
        assert_true(is_faulty(q, 0));
        advance(q, LOST);
        q->control.lost_at = 0;
        q->output.lost_at = 0;
        agent_save_failure_on_connected(&q->save);
        assert_true(is_faulty(q, 0));
        assert_int_equal(pause_of(q), LOST);
        advance(q, MARK);
        assert_true(is_faulty(q, 0));
        advance(q, LOST + MARK);
        assert_false(is_faulty(q, 0));
    }
}

static void the_loss_of_one_connection_pauses_for_a_second_at_most(void **state)
{
    queue_t *q = make_lines(*state);

    lose(q, false, apr_time_from_sec(20));
    lose(q, false, apr_time_from_sec(20));
    assert_int_equal(pause_of(q), apr_time_from_sec(1));
}

static void a_crash_pauses_its_deployment_for_as_long_as_the_recovery(
    void **state)
{
    for (int sec = 20; sec <= 120; sec += 20) {
        queue_t *q = make_lines(*state);

        for (int i = 0; i < 6; i++) {
            apr_time_t pause = apr_time_from_sec(sec);

            q->control.crash_reported_at = q->fixture->runs->context->now;
            lose(q, false, pause);
            assert_int_equal(
                pause_of(q),
                AGENT_MIN(pause << AGENT_MIN(i, 4), apr_time_from_sec(300)));
            assert_true(is_faulty(q, 0));
            advance(q, pause_of(q));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_mark_lasts_for_half_a_minute_after_the_last_failure),
        CHECK_TEST(failures_soon_after_a_mark_double_it_up_to_an_hour),
        CHECK_TEST(lines_of_a_marked_deployment_share_no_batch),
        CHECK_TEST(failures_in_a_row_mark_a_deployment_others_do_not),
        CHECK_TEST(the_third_shared_batch_that_a_refusal_split_marks),
        CHECK_TEST(refusals_that_split_no_shared_batch_mark_nobody),
        CHECK_TEST(refusals_extend_a_mark_while_they_are_frequent),
        CHECK_TEST(one_slow_statement_marks_nobody),
        CHECK_TEST(one_failure_of_each_kind_marks_nobody),
        CHECK_TEST(a_shortage_marks_a_deployment_while_others_have_none),
        CHECK_TEST(output_that_ends_its_connection_pauses_its_deployment),
        CHECK_TEST(a_crash_of_another_process_pauses_no_deployment),
        CHECK_TEST(losses_that_are_far_apart_mark_nobody),
        CHECK_TEST(a_restart_marks_nobody),
        CHECK_TEST(a_crash_marks_whichever_connection_is_there_first),
        CHECK_TEST(the_loss_of_one_connection_pauses_for_a_second_at_most),
        CHECK_TEST(a_crash_pauses_its_deployment_for_as_long_as_the_recovery),
    };

    return CHECK_RUN(tests);
}

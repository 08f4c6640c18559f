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
    agent_faulty_mark(faulty_of(q), deployment(q, run), "");
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

/* Whether the deployment of a line alone is marked after that failure. */
static bool is_marked_after(apr_pool_t *pool, agent_failure_t failure)
{
    queue_t *q = make(pool);

    add_long(q, 0);
    fail_first(q, failure);
    return is_faulty(q, 0);
}

static void failures_of_its_output_mark_a_deployment_others_do_not(void **state)
{
    assert_true(is_marked_after(*state, AGENT_FAILURE_DATA));
    assert_true(is_marked_after(*state, AGENT_FAILURE_OTHER));
    assert_true(is_marked_after(*state, AGENT_FAILURE_TIMEOUT));
    assert_false(is_marked_after(*state, AGENT_FAILURE_LOCK));
    assert_false(is_marked_after(*state, AGENT_FAILURE_SETUP));
    assert_false(is_marked_after(*state, AGENT_FAILURE_RETRY));
    assert_false(is_marked_after(*state, AGENT_FAILURE_CANCEL));
    assert_false(is_marked_after(*state, AGENT_FAILURE_SHORTAGE));
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

static void output_that_ends_its_connection_pauses_its_deployment(void **state)
{
    queue_t *q = make(*state);

    /* Two lines: they have no pauses of their own. */
    add_long(q, 0);
    add_long(q, 0);
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

static void a_crash_of_another_process_pauses_no_deployment(void **state)
{
    queue_t *q = make(*state);

    add_long(q, 0);
    add_long(q, 0);
    lose(q, true, LOST);
    assert_int_equal(pause_of(q), 0);
    assert_false(is_faulty(q, 0));
}

/* The deployment of a long outage did not cause it. */
static void an_outage_pauses_a_deployment_for_a_second(void **state)
{
    queue_t *q = make(*state);

    add_long(q, 0);
    add_long(q, 0);
    lose(q, false, apr_time_from_sec(20));
    assert_int_equal(pause_of(q), apr_time_from_sec(1));
}

static void a_crash_pauses_its_deployment_for_as_long_as_the_recovery(
    void **state)
{
    queue_t *q = make(*state);

    add_long(q, 0);
    add_long(q, 0);
    q->control.crash_reported_at = NOW;
    lose(q, false, apr_time_from_sec(20));
    assert_int_equal(pause_of(q), apr_time_from_sec(20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_mark_lasts_for_half_a_minute_after_the_last_failure),
        CHECK_TEST(failures_soon_after_a_mark_double_it_up_to_an_hour),
        CHECK_TEST(lines_of_a_marked_deployment_share_no_batch),
        CHECK_TEST(failures_of_its_output_mark_a_deployment_others_do_not),
        CHECK_TEST(a_shortage_marks_a_deployment_while_others_have_none),
        CHECK_TEST(output_that_ends_its_connection_pauses_its_deployment),
        CHECK_TEST(a_crash_of_another_process_pauses_no_deployment),
        CHECK_TEST(an_outage_pauses_a_deployment_for_a_second),
        CHECK_TEST(a_crash_pauses_its_deployment_for_as_long_as_the_recovery),
    };

    return CHECK_RUN(tests);
}

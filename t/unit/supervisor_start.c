/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Start lines whose statements fail; see supervisor/statement/start.h. */
#include "supervisor_queue.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/db/connection.h"
#include "../../mod_agent/supervisor/statement/start.h"

/* The first runs wait for their start lines, which are composed alone. */
static agent_start_queue_t *make_starts(queue_t *q, int waiting)
{
    agent_start_queue_t *starts = apr_pcalloc(q->fixture->runs->context->pool,
                                              sizeof(*starts));
    static const agent_pool_config_t config;

    *starts = (agent_start_queue_t){.worker = &q->worker,
                                    .runners = q->fixture->io->runners,
                                    .runs = q->fixture->runs};
    agent_start_init(starts);
    starts->limit.current = 1;
    q->fixture->runner->state = AGENT_RUNNER_READY;
    q->fixture->runner->slots = RUNS;
    q->fixture->runner->runner_pool->config = &config;
    for (int i = waiting; i < RUNS; i++) {
        agent_lease_start(&q->fixture->runs->leases, q->fixture->leases[i]);
    }
    agent_lease_start(&q->fixture->runs->leases, q->fixture->other);
    return starts;
}

/* The next statement is sent when it is due, without a connection of libpq, and
 * fails. Returns the run whose line it was to compose. */
static int fail_start(const queue_t *q, agent_start_queue_t *starts,
                      agent_failure_t failure)
{
    agent_context_t *context = q->fixture->runs->context;
    apr_time_t due = agent_start_operation.due(starts);
    agent_db_t db = {
        .prepared = apr_array_make(context->pool, 1, sizeof(void *))};
    agent_database_t database = {
        .context = context, .db = &db, .scratch = context->pool};
    agent_error_t *err;
    int run = 0;

    context->now = due > context->now ? due : context->now;
    q->worker.bulk->sent_at = context->now;
    agent_start_operation.send(starts, &database, &err);
    while (!q->fixture->leases[run]->is_start_sent) {
        run++;
    }
    (agent_start_operation.fail)(starts, failure);
    return run;
}

/* Returns after how many failures the only run that waits ends. */
static int count_failures(const queue_t *q, agent_start_queue_t *starts,
                          agent_failure_t failure)
{
    int failures = 0;

    while (q->fixture->runs->leases.waiting > 0) {
        fail_start(q, starts, failure);
        failures++;
    }
    assert_int_equal(q->fixture->leases[0]->state, AGENT_LEASE_ENDED);
    return failures;
}

static void a_run_ends_when_composing_its_line_alone_fails_three_times(
    void **state)
{
    static const agent_failure_t failures[] = {
        AGENT_FAILURE_TIMEOUT, AGENT_FAILURE_DATA, AGENT_FAILURE_OTHER};

    for (int i = 0; i < 3; i++) {
        queue_t *q = make_logged(*state);

        assert_int_equal(count_failures(q, make_starts(q, 1), failures[i]), 3);
    }
}

/* A line of another run may crash the database. */
static void a_run_ends_after_an_hour_when_its_connection_is_lost_each_time(
    void **state)
{
    queue_t *q = make_logged(*state);

    count_failures(q, make_starts(q, 1), AGENT_FAILURE_LOST);
    assert_true(q->fixture->runs->context->now - NOW
                >= apr_time_from_sec(3600));
}

static void a_run_ends_after_minutes_in_which_longer_lines_are_composed(
    void **state)
{
    queue_t *q = make_logged(*state);
    agent_start_queue_t *starts = make_starts(q, 1);
    const apr_time_t *now = &q->fixture->runs->context->now;

    q->fixture->leases[0]->start_bytes = 1000;
    while (q->fixture->runs->leases.waiting > 0) {
        fail_start(q, starts, AGENT_FAILURE_LOST);
        agent_patience_save(&starts->composed, 2000, *now + 1);
    }
    assert_true(*now - NOW >= apr_time_from_sec(300));
    assert_true(*now - NOW < apr_time_from_sec(400));
}

static void a_run_whose_connection_was_lost_waits_while_others_start(
    void **state)
{
    queue_t *q = make_logged(*state);
    agent_start_queue_t *starts = make_starts(q, 2);

    for (int i = 0; i < 5; i++) {
        q->fixture->leases[1]->start_retry.retry_at = APR_INT64_MAX;
        assert_int_equal(fail_start(q, starts, AGENT_FAILURE_LOST), 0);
    }
    q->fixture->leases[1]->start_retry.retry_at = 0;
    assert_true(agent_start_operation.due(starts)
                <= q->fixture->runs->context->now);
    assert_int_equal(fail_start(q, starts, AGENT_FAILURE_LOST), 1);
}

static void keep_report(void *baton, agent_log_level_t level, const char *id,
                        apr_status_t rv, const char *text)
{
    apr_snprintf(baton, 200, "%s %s", id, text);
}

/* The only run that waits fails, and the database is up again after a crash of
 * which the control connection got the notice, perhaps the bulk connection too.
 */
static void lose_start(queue_t *q, agent_start_queue_t *starts, bool has_notice)
{
    apr_time_t *now = &q->fixture->runs->context->now;

    *now = agent_start_operation.due(starts);
    q->bulk.crash_reported_at = has_notice ? *now : 0;
    fail_start(q, starts, AGENT_FAILURE_LOST);
    agent_start_on_connected(starts);
    report_crash(q);
    agent_start_on_connected(starts);
    agent_start_on_connected(starts);
}

static void a_run_ends_when_its_line_alone_has_crashed_the_database_three_times(
    void **state)
{
    queue_t *q = make_logged(*state);
    agent_start_queue_t *starts = make_starts(q, 1);

    q->fixture->runs->context->now = NOW + 1;
    starts->retry_at = NOW + 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(q->fixture->leases[0]->start_retry.failures, i);
        assert_int_equal(q->fixture->runs->leases.waiting, 1);
        lose_start(q, starts, false);
    }
    assert_int_equal(q->fixture->runs->leases.waiting, 0);
    assert_int_equal(q->fixture->leases[0]->state, AGENT_LEASE_ENDED);
}

static void a_crash_of_another_process_does_not_count_for_a_start(void **state)
{
    queue_t *q = make_logged(*state);
    agent_start_queue_t *starts = make_starts(q, 1);

    starts->retry_at = NOW;
    for (int i = 0; i < 9; i++) {
        lose_start(q, starts, true);
    }
    assert_int_equal(q->fixture->leases[0]->start_retry.failures, 0);
    assert_int_equal(q->fixture->runs->leases.waiting, 1);
}

/* It would not get the notice of a crash. */
static void a_start_whose_connection_was_lost_waits_for_the_control_connection(
    void **state)
{
    queue_t *q = make_logged(*state);
    agent_start_queue_t *starts = make_starts(q, 1);

    q->control.lost_at = NOW;
    assert_true(agent_start_operation.due(starts) <= NOW);
    fail_start(q, starts, AGENT_FAILURE_LOST);
    assert_true(agent_start_operation.due(starts) == AGENT_CLOCK_NEVER);
    q->control.lost_at = 0;
    assert_true(agent_start_operation.due(starts) < NOW + apr_time_from_sec(1));
}

/* The loss was not that crash. */
static void a_crash_after_an_answer_does_not_count_for_a_start(void **state)
{
    queue_t *q = make_logged(*state);
    agent_start_queue_t *starts = make_starts(q, 1);

    fail_start(q, starts, AGENT_FAILURE_LOST);
    q->bulk.answered_at = ++q->fixture->runs->context->now;
    report_crash(q);
    agent_start_on_connected(starts);
    assert_int_equal(q->fixture->leases[0]->start_retry.failures, 0);
}

/* From a pause of a second on. */
static void the_log_names_a_run_whose_start_is_repeated_for_long(void **state)
{
    queue_t *q = make_logged(*state);
    agent_start_queue_t *starts = make_starts(q, 1);
    const agent_lease_t *lease = q->fixture->leases[0];
    agent_supervisor_config_t config = *q->worker.context->config;
    char text[200] = "";

    config.log = (agent_log_t){keep_report, text};
    q->worker.context->config = &config;
    for (int i = 0; i < 5; i++) {
        fail_start(q, starts, AGENT_FAILURE_LOST);
        assert_string_equal(text, "");
    }
    fail_start(q, starts, AGENT_FAILURE_LOST);
    assert_non_null(strstr(text, "AGT0380 the start of run "));
    assert_memory_equal(text + strlen("AGT0380 the start of run "),
                        lease->key.run_id, 36);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_run_ends_when_composing_its_line_alone_fails_three_times),
        CHECK_TEST(
            a_run_ends_after_an_hour_when_its_connection_is_lost_each_time),
        CHECK_TEST(a_run_ends_after_minutes_in_which_longer_lines_are_composed),
        CHECK_TEST(a_run_whose_connection_was_lost_waits_while_others_start),
        CHECK_TEST(
            a_run_ends_when_its_line_alone_has_crashed_the_database_three_times),
        CHECK_TEST(a_crash_of_another_process_does_not_count_for_a_start),
        CHECK_TEST(
            a_start_whose_connection_was_lost_waits_for_the_control_connection),
        CHECK_TEST(a_crash_after_an_answer_does_not_count_for_a_start),
        CHECK_TEST(the_log_names_a_run_whose_start_is_repeated_for_long),
    };

    return CHECK_RUN(tests);
}

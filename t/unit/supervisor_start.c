/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Start lines whose statements fail; see supervisor/statement/start.h. */
#include "supervisor_queue.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_run_ends_when_composing_its_line_alone_fails_three_times),
        CHECK_TEST(
            a_run_ends_after_an_hour_when_its_connection_is_lost_each_time),
        CHECK_TEST(a_run_ends_after_minutes_in_which_longer_lines_are_composed),
        CHECK_TEST(a_run_whose_connection_was_lost_waits_while_others_start),
    };

    return CHECK_RUN(tests);
}

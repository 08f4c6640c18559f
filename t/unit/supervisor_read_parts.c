/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Statements for requests of runs that fail; see
 * supervisor/statement/read_parts.h. */
#include "supervisor_queue.h"

#include <libpq-fe.h>

#include "../../mod_agent/supervisor/statement/read_parts.h"
#include "../../mod_agent/supervisor/statement/retry.h"

static void request_state_of(const queue_t *q, agent_lease_t *lease)
{
    agent_line_t line = {.type = AGENT_LINE_REQUEST,
                         .op = "state.get",
                         .op_length = strlen("state.get"),
                         .cursor = ""};

    agent_runner_request_begin(lease, "01890000-0000-7000-8000-00000000000c");
    assert_null(
        agent_runner_request_take(&q->fixture->runs->requests, lease, &line));
}

static void request_state(const queue_t *q, int run)
{
    request_state_of(q, q->fixture->leases[run]);
}

/* Run 0 has requested a part of its state. */
static agent_read_parts_t *make_request(queue_t *q)
{
    agent_lease_t *lease = q->fixture->leases[0];
    agent_runner_request_queue_t *queue = &q->fixture->runs->requests;
    agent_read_parts_t *answer = apr_pcalloc(q->fixture->runs->context->pool,
                                             sizeof(*answer));

    *answer = (agent_read_parts_t){.worker = &q->worker,
                                   .runners = q->fixture->io->runners,
                                   .runs = q->fixture->runs,
                                   .key = lease->key};
    agent_runner_request_init(queue, &q->batches->backlogs,
                              q->fixture->runs->context->pool);
    request_state(q, 0);
    return answer;
}

/* Its statement fails. Returns whether the request still waits. */
static bool fail_request(queue_t *q, agent_read_parts_t *answer,
                         agent_failure_t failure)
{
    agent_runner_request_t *request = &q->fixture->leases[0]->request;

    request->is_sent = true;
    q->bulk.sent_at = q->fixture->runs->context->now;
    (agent_read_parts_operation.fail)(answer, failure);
    assert_false(request->is_sent);
    return request->is_waiting;
}

static void a_request_whose_statement_fails_three_times_is_refused(void **state)
{
    queue_t *q = make_logged(*state);
    agent_read_parts_t *answer = make_request(q);

    assert_true(fail_request(q, answer, AGENT_FAILURE_TIMEOUT));
    assert_true(fail_request(q, answer, AGENT_FAILURE_OTHER));
    assert_false(fail_request(q, answer, AGENT_FAILURE_TIMEOUT));
}

static void cancels_and_failures_that_may_pass_do_not_count(void **state)
{
    static const agent_failure_t failures[] = {
        AGENT_FAILURE_CANCEL, AGENT_FAILURE_RETRY, AGENT_FAILURE_SHORTAGE};
    queue_t *q = make_logged(*state);
    agent_read_parts_t *answer = make_request(q);

    for (int i = 0; i < 9; i++) {
        assert_true(fail_request(q, answer, failures[i % 3]));
        assert_true((agent_read_parts_operation.due)(answer) > NOW);
    }
    assert_int_equal(q->fixture->leases[0]->request.retry.failures, 0);
}

/* A statement of another run may crash the database. */
static void a_request_whose_connection_is_lost_is_refused_after_an_hour(
    void **state)
{
    queue_t *q = make_logged(*state);
    agent_read_parts_t *answer = make_request(q);
    apr_time_t *now = &q->fixture->runs->context->now;

    while (fail_request(q, answer, AGENT_FAILURE_LOST)) {
        apr_time_t due = (agent_read_parts_operation.due)(answer);

        assert_true(due > *now);
        *now = due;
    }
    assert_true(*now - NOW >= apr_time_from_sec(3600));
}

/* While it waits after the failure. */
static void a_request_that_failed_delays_no_other_of_its_runner(void **state)
{
    queue_t *q = make_logged(*state);
    agent_read_parts_t *answer = make_request(q);

    for (int i = 0; i < 9; i++) {
        fail_request(q, answer, AGENT_FAILURE_LOST);
    }
    assert_true((agent_read_parts_operation.due)(answer) > NOW);
    request_state(q, 1);
    assert_true((agent_read_parts_operation.due)(answer) == NOW);
}

static void a_request_that_was_refused_delays_no_other(void **state)
{
    queue_t *q = make_logged(*state);
    agent_read_parts_t *answer = make_request(q);

    fail_request(q, answer, AGENT_FAILURE_OTHER);
    assert_true((agent_read_parts_operation.due)(answer) > NOW);
    request_state(q, 1);
    assert_true((agent_read_parts_operation.due)(answer) == NOW);
}

/* The bulk connection is lost during the request, and made again after that
 * time; then, perhaps, the control connection. */
static void lose_request(queue_t *q, agent_read_parts_t *answer,
                         bool is_control_lost, apr_interval_time_t time)
{
    agent_context_t *context = q->fixture->runs->context;

    q->bulk.lost_at = context->now;
    fail_request(q, answer, AGENT_FAILURE_LOST);
    q->control.lost_at = is_control_lost ? context->now : 0;
    context->now += time;
    q->bulk.lost_at = 0;
    agent_read_parts_on_connected(answer);
    if (is_control_lost) {
        q->control.lost_at = 0;
        q->control.connection++;
        agent_read_parts_on_connected(answer);
    }
}

static void requests_of_a_deployment_pause_when_one_has_crashed_the_database(
    void **state)
{
    queue_t *q = make_logged(*state);
    agent_read_parts_t *answer = make_request(q);
    apr_time_t *now = &q->fixture->runs->context->now;
    apr_time_t pause = apr_time_from_sec(70);

    report_crash(q);
    lose_request(q, answer, true, pause);
    request_state(q, 1);
    assert_int_equal((agent_read_parts_operation.due)(answer), *now + pause);
    request_state_of(q, q->fixture->other);
    assert_int_equal((agent_read_parts_operation.due)(answer), *now);
}

static bool is_faulty(const queue_t *q)
{
    return agent_faulty_is(&q->batches->faulty,
                           q->fixture->leases[0]->deployment_id);
}

static void a_restart_pauses_no_requests(void **state)
{
    queue_t *q = make_logged(*state);
    agent_read_parts_t *answer = make_request(q);

    for (int i = 0; i < 6; i++) {
        lose_request(q, answer, true, 1);
        assert_false(is_faulty(q));
    }
    lose_request(q, answer, false, 1);
    assert_false(is_faulty(q));
    lose_request(q, answer, false, 1);
    assert_true(is_faulty(q));
}

static void a_crash_of_another_process_pauses_no_requests(void **state)
{
    queue_t *q = make_logged(*state);
    agent_read_parts_t *answer = make_request(q);

    for (int i = 0; i < 6; i++) {
        report_crash(q);
        q->bulk.crash_reported_at = q->control.crash_reported_at;
        lose_request(q, answer, true, 1);
        assert_false(is_faulty(q));
    }
}

/* Another connection gets the notice of the crash after that. */
static void a_request_that_has_crashed_the_database_three_times_is_refused(
    void **state)
{
    queue_t *q = make_logged(*state);
    agent_read_parts_t *answer = make_request(q);
    const agent_runner_request_t *request = &q->fixture->leases[0]->request;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(request->retry.failures, i);
        assert_true(fail_request(q, answer, AGENT_FAILURE_LOST));
        agent_read_parts_on_connected(answer);
        assert_true(request->is_waiting);
        report_crash(q);
        agent_read_parts_on_connected(answer);
        q->fixture->runs->context->now++;
    }
    assert_false(request->is_waiting);
}

static void a_crash_of_another_process_does_not_count_for_a_request(
    void **state)
{
    queue_t *q = make_logged(*state);
    agent_read_parts_t *answer = make_request(q);

    for (int i = 0; i < 9; i++) {
        report_crash(q);
        q->bulk.crash_reported_at = q->control.crash_reported_at;
        assert_true(fail_request(q, answer, AGENT_FAILURE_LOST));
        agent_read_parts_on_connected(answer);
    }
    assert_int_equal(q->fixture->leases[0]->request.retry.failures, 0);
}

/* The loss was not a crash that comes later. */
static void an_answer_ends_the_failures_of_a_request(void **state)
{
    queue_t *q = make_logged(*state);
    agent_read_parts_t *answer = make_request(q);
    agent_runner_request_t *request = &q->fixture->leases[0]->request;
    PGresult *rows = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc columns[] = {{"code"}, {"body"}, {"cursor"}};

    fail_request(q, answer, AGENT_FAILURE_LOST);
    assert_true(request->retry.crash_since > 0);
    request->is_sent = true;
    assert_true(PQsetResultAttrs(rows, 3, columns));
    assert_true(PQsetvalue(rows, 0, 0, "ok", 2));
    assert_true(PQsetvalue(rows, 0, 1, "{}", 2));
    assert_true(PQsetvalue(rows, 0, 2, NULL, -1));
    (agent_read_parts_operation.receive)(answer,
                                         (const agent_db_result_t *)&rows);
    PQclear(rows);
    assert_false(request->is_waiting);
    report_crash(q);
    assert_false(agent_retry_is_at_fault(&request->retry, &q->worker));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_request_whose_statement_fails_three_times_is_refused),
        CHECK_TEST(cancels_and_failures_that_may_pass_do_not_count),
        CHECK_TEST(a_request_whose_connection_is_lost_is_refused_after_an_hour),
        CHECK_TEST(a_request_that_failed_delays_no_other_of_its_runner),
        CHECK_TEST(a_request_that_was_refused_delays_no_other),
        CHECK_TEST(
            requests_of_a_deployment_pause_when_one_has_crashed_the_database),
        CHECK_TEST(a_restart_pauses_no_requests),
        CHECK_TEST(a_crash_of_another_process_pauses_no_requests),
        CHECK_TEST(
            a_request_that_has_crashed_the_database_three_times_is_refused),
        CHECK_TEST(a_crash_of_another_process_does_not_count_for_a_request),
        CHECK_TEST(an_answer_ends_the_failures_of_a_request),
    };

    return CHECK_RUN(tests);
}

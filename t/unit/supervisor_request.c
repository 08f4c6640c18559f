/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Requests of runs and their replies; see
 * supervisor/runner/run/runner_request.h. */
#include "supervisor_fixture.h"

#include "../../mod_agent/core/raw.h"
#include "../../mod_agent/core/scan.h"
#include "../../mod_agent/supervisor/runner/run/ack.h"
#include "../../mod_agent/supervisor/runner/run/run_end.h"
#include "../../mod_agent/supervisor/statement/start.h"

#define CHECKPOINT "01890000-0000-7000-8000-00000000000c"

/* The fixture with nine runs that start from a checkpoint. */
static fixture_t *make_requests(apr_pool_t *pool)
{
    fixture_t *fixture = make_fixture(pool);

    agent_runner_request_init(&fixture->runs->requests,
                              &fixture->runs->batches.backlogs, pool);
    for (int i = 0; i < RUNS; i++) {
        agent_runner_request_begin(fixture->leases[i], CHECKPOINT);
    }
    agent_runner_request_begin(fixture->other, CHECKPOINT);
    return fixture;
}

static const char *take(const fixture_t *fixture, agent_lease_t *lease,
                        const char *op, const char *cursor)
{
    agent_line_t line = {.type = AGENT_LINE_REQUEST,
                         .request_id = 5,
                         .op = op,
                         .op_length = strlen(op),
                         .cursor = cursor,
                         .cursor_length = strlen(cursor)};

    return agent_runner_request_take(&fixture->runs->requests, lease, &line);
}

/* A request for records of the graph library. */
static const char *get_records(const fixture_t *fixture, agent_lease_t *lease,
                               const char *args)
{
    agent_line_t line = {.type = AGENT_LINE_REQUEST,
                         .request_id = 6,
                         .op = "blob.get",
                         .op_length = 8,
                         .args = args,
                         .args_length = strlen(args),
                         .cursor = "9.9",
                         .cursor_length = 3};

    return agent_runner_request_take(&fixture->runs->requests, lease, &line);
}

static void get_state(const fixture_t *fixture, agent_lease_t *lease)
{
    assert_null(take(fixture, lease, "state.get", lease->request.state_cursor));
}

static bool has_room(void *baton, const agent_lease_t *lease)
{
    return lease->group->runner != baton || lease->request.long_bytes > 0;
}

/* full: a runner without room, or NULL. */
static agent_lease_t *find(const fixture_t *fixture, agent_runner_t *full)
{
    return agent_runner_request_find(&fixture->runs->requests, has_room, full);
}

/* Asserts that the unread input is one reply, and reads it. */
static void expect_reply(agent_lease_t *lease, const char *member,
                         const char *value)
{
    agent_runner_t *runner = lease->group->runner;
    const char *text = agent_buffer_text(&runner->input);
    agent_scan_t scan = {.code = AGENT_SCAN_OK};
    agent_raw_t line = agent_raw_read(text);

    assert_true(
        agent_scan_json(&scan, text, agent_buffer_length(&runner->input)));
    assert_true(agent_raw_equals(agent_raw_get(line, "type"), "reply"));
    if (strcmp(member, "code") == 0) {
        line = agent_raw_get(line, "error");
    }
    line = agent_raw_get(line, member);
    assert_int_equal(line.length, strlen(value));
    assert_memory_equal(line.text, value, line.length);
    assert_int_equal(read_go(runner), 1);
}

static void a_state_is_read_part_by_part(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_runner_request_queue_t *queue = &fixture->runs->requests;
    agent_lease_t *lease = fixture->leases[0];

    get_state(fixture, lease);
    assert_ptr_equal(find(fixture, NULL), lease);
    agent_runner_request_reply(queue, lease, "{\"a\":{\"items\":[1]}}", "1.1");
    assert_null(find(fixture, NULL));
    expect_reply(lease, "cursor", "\"1.1\"");
    get_state(fixture, lease);
    agent_runner_request_reply(queue, lease, "{\"b\":{\"value\":2}}", NULL);
    expect_reply(lease, "result", "{\"b\":{\"value\":2}}");
    /* It was read to its end. */
    assert_null(take(fixture, lease, "state.get", ""));
    expect_reply(lease, "code", "\"invalid_cursor\"");
}

static void a_run_without_a_state_has_an_empty_one(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_lease_t *lease = fixture->leases[0];

    lease->request.checkpoint_id[0] = '\0';
    get_state(fixture, lease);
    assert_null(find(fixture, NULL));
    expect_reply(lease, "result", "{\"values\":{}}");
    assert_true(lease->request.is_done);
}

static void the_checkpoint_is_that_of_the_start_line(void **state)
{
    static const char *const starts[] = {
        "{\"checkpoint\":{\"checkpoint_id\":\"" CHECKPOINT "\"}}",
        "{\"input\":{\"checkpoint\":{\"checkpoint_id\":\"" CHECKPOINT "\"}}}",
        "{\"checkpoint\":null}", "{\"checkpoint\":{\"checkpoint_id\":1}}"};
    static const char *const found[] = {CHECKPOINT, "", "", ""};
    fixture_t *fixture = make_fixture(*state);

    for (int i = 0; i < 4; i++) {
        agent_start_hand_over(fixture->runs, fixture->leases[i], starts[i]);
        assert_string_equal(fixture->leases[i]->request.checkpoint_id,
                            found[i]);
    }
}

static void a_run_may_not_request_before_it_read_the_last_reply(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_lease_t *lease = fixture->leases[0];

    get_state(fixture, lease);
    assert_non_null(take(fixture, lease, "state.get", ""));
    agent_runner_request_reply(&fixture->runs->requests, lease, "{}", "1.1");
    assert_non_null(take(fixture, lease, "state.get", "1.1"));
    read_go(fixture->runner);
    get_state(fixture, lease);
}

static void a_run_may_send_few_requests_that_are_refused(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_lease_t *lease = fixture->leases[0];

    for (int i = 0; i < AGENT_RUNNER_REQUEST_MAX_REFUSED; i++) {
        const char *op = i % 2 == 0 ? "state.put" : "state.get";

        assert_null(take(fixture, lease, op, "9.9"));
        expect_reply(lease, "code",
                     i % 2 == 0 ? "\"unknown_op\"" : "\"invalid_cursor\"");
    }
    assert_non_null(take(fixture, lease, "state.put", ""));
}

static void runners_take_turns_and_runs_keep_their_order(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_runner_request_queue_t *queue = &fixture->runs->requests;

    for (int i = 0; i < RUNS; i++) {
        get_state(fixture, fixture->leases[i]);
    }
    get_state(fixture, fixture->other);
    assert_ptr_equal(find(fixture, NULL), fixture->leases[0]);
    agent_runner_request_reply(queue, fixture->leases[0], "{}", "1.1");
    assert_ptr_equal(find(fixture, NULL), fixture->other);
    agent_runner_request_reply(queue, fixture->other, "{}", "1.1");
    assert_ptr_equal(find(fixture, NULL), fixture->leases[1]);
    /* The next request of a run that got a part comes after the others. */
    read_go(fixture->runner);
    get_state(fixture, fixture->leases[0]);
    for (int i = 1; i < RUNS; i++) {
        assert_ptr_equal(find(fixture, NULL), fixture->leases[i]);
        agent_runner_request_reply(queue, fixture->leases[i], "{}", NULL);
    }
    assert_ptr_equal(find(fixture, NULL), fixture->leases[0]);
}

static void a_runner_without_room_is_passed_over(void **state)
{
    fixture_t *fixture = make_requests(*state);

    get_state(fixture, fixture->leases[0]);
    assert_null(find(fixture, fixture->runner));
    get_state(fixture, fixture->other);
    assert_ptr_equal(find(fixture, fixture->runner), fixture->other);
}

static void unread_input_leaves_no_room_for_a_part(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_runner_table_t *table = fixture->io->runners;
    agent_runner_t *runner = fixture->runner;
    char *bytes = apr_pcalloc(*state, AGENT_START_RUNNER_BYTES);

    assert_true(agent_start_has_room(table, runner, 1000000));
    agent_buffer_append(agent_runner_input(runner), bytes,
                        AGENT_START_RUNNER_BYTES);
    assert_true(agent_start_has_room(table, runner, 1000000));
    agent_buffer_append(&runner->input, bytes, 1);
    assert_false(agent_start_has_room(table, runner, 1000000));
}

static void a_request_that_failed_is_tried_after_the_others(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_runner_request_queue_t *queue = &fixture->runs->requests;

    get_state(fixture, fixture->leases[0]);
    get_state(fixture, fixture->leases[1]);
    get_state(fixture, fixture->other);
    agent_runner_request_postpone(queue, fixture->leases[0]);
    assert_ptr_equal(find(fixture, NULL), fixture->other);
    agent_runner_request_reply(queue, fixture->other, "{}", NULL);
    assert_ptr_equal(find(fixture, NULL), fixture->leases[1]);
    agent_runner_request_reply(queue, fixture->leases[1], "{}", NULL);
    assert_ptr_equal(find(fixture, NULL), fixture->leases[0]);
}

static void a_run_that_is_taken_from_its_runner_does_not_wait(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_lease_t *lease = fixture->leases[0];

    get_state(fixture, lease);
    agent_run_end_set_state(fixture->runs, lease, AGENT_LEASE_ENDED);
    assert_null(find(fixture, NULL));
    expect_reply(lease, "code", "\"run_taken\"");
    get_state(fixture, lease);
    expect_reply(lease, "code", "\"run_taken\"");
}

static void the_request_of_a_run_that_has_ended_is_dropped(void **state)
{
    fixture_t *fixture = make_requests(*state);

    get_state(fixture, fixture->leases[0]);
    get_state(fixture, fixture->leases[1]);
    agent_run_end_detach(fixture->runs, fixture->leases[0]);
    assert_ptr_equal(find(fixture, NULL), fixture->leases[1]);
    agent_run_end_detach(fixture->runs, fixture->leases[1]);
    assert_null(find(fixture, NULL));
    assert_int_equal(agent_buffer_length(&fixture->runner->input), 0);
}

static void a_cursor_that_is_too_long_is_not_kept(void **state)
{
    fixture_t *fixture = make_requests(*state);
    char cursor[AGENT_RUNNER_REQUEST_CURSOR_SIZE + 1];

    memset(cursor, '1', sizeof(cursor));
    cursor[sizeof(cursor) - 1] = '\0';
    get_state(fixture, fixture->leases[0]);
    agent_runner_request_reply(&fixture->runs->requests, fixture->leases[0],
                               "{}", cursor);
    expect_reply(fixture->leases[0], "code", "\"state_unreadable\"");
}

static void a_request_for_records_keeps_its_arguments(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_lease_t *lease = fixture->leases[0];
    char args[] = "{\"digests\":[]}";

    assert_null(get_records(fixture, lease, args));
    memset(args, 'x', sizeof(args) - 1);
    assert_ptr_equal(find(fixture, NULL), lease);
    assert_int_equal(lease->request.op, AGENT_RUNNER_REQUEST_BLOBS);
    assert_string_equal(lease->request.args, "{\"digests\":[]}");
    assert_string_equal(lease->request.cursor, "9.9");
    agent_runner_request_reply(&fixture->runs->requests, lease, "{}", "2");
    expect_reply(lease, "cursor", "\"2\"");
    assert_null(lease->request.pool);
    /* As often as the run likes; the state is still read from its beginning. */
    assert_null(get_records(fixture, lease, ""));
    assert_null(lease->request.args);
    agent_runner_request_reply(&fixture->runs->requests, lease, "{}", NULL);
    expect_reply(lease, "cursor", "null");
    get_state(fixture, lease);
    assert_ptr_equal(find(fixture, NULL), lease);
    assert_int_equal(lease->request.op, AGENT_RUNNER_REQUEST_STATE);
}

static void a_request_for_records_waits_for_those_sent_before(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_runner_request_queue_t *queue = &fixture->runs->requests;
    agent_lease_t *lease = fixture->leases[0];

    lease->records.sent = 5;
    lease->records.saved = 3;
    assert_null(get_records(fixture, lease, "{}"));
    assert_null(find(fixture, NULL));
    assert_non_null(get_records(fixture, lease, "{}"));
    /* Others do not wait for it, nor does it wait for later records. */
    get_state(fixture, fixture->leases[1]);
    assert_ptr_equal(find(fixture, NULL), fixture->leases[1]);
    lease->records.sent = 9;
    lease->records.saved = 4;
    agent_runner_request_save(queue, lease);
    assert_ptr_equal(find(fixture, NULL), fixture->leases[1]);
    lease->records.saved = 5;
    agent_runner_request_save(queue, lease);
    agent_runner_request_reply(queue, fixture->leases[1], "{}", NULL);
    assert_ptr_equal(find(fixture, NULL), lease);
    agent_runner_request_save(queue, lease);
    agent_runner_request_reply(queue, lease, "{}", NULL);
    assert_null(find(fixture, NULL));
}

static void a_request_that_waits_for_records_can_be_dropped(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_lease_t *lease = fixture->leases[0];

    for (int i = 0; i < 2; i++) {
        fixture->leases[i]->records.sent = 1;
        assert_null(get_records(fixture, fixture->leases[i], "{}"));
    }
    agent_run_end_set_state(fixture->runs, lease, AGENT_LEASE_ENDED);
    expect_reply(lease, "code", "\"run_taken\"");
    agent_run_end_detach(fixture->runs, lease);
    agent_run_end_detach(fixture->runs, fixture->leases[1]);
    assert_null(find(fixture, NULL));
    assert_null(fixture->leases[1]->request.pool);
}

/* A request to the store; bytes: the length of its arguments. */
static const char *use_store(const fixture_t *fixture, agent_lease_t *lease,
                             apr_size_t bytes)
{
    agent_line_t line = {.type = AGENT_LINE_REQUEST,
                         .request_id = 7,
                         .op = "store",
                         .op_length = 5,
                         .args_length = bytes,
                         .cursor = "",
                         .cursor_length = 0};
    char *args = apr_pcalloc(fixture->runs->requests.pool, bytes + 1);

    memset(args, ' ', bytes);
    line.args = args;
    return agent_runner_request_take(&fixture->runs->requests, lease, &line);
}

static void long_arguments_are_counted_until_the_reply(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_runner_request_queue_t *queue = &fixture->runs->requests;
    const apr_size_t *bytes = &fixture->runs->batches.backlogs
                                   .sums[AGENT_BACKLOG_DEDICATED];

    assert_null(
        use_store(fixture, fixture->leases[0], AGENT_RUNNER_REQUEST_MAX_ARGS));
    assert_int_equal(*bytes, 0);
    assert_null(use_store(fixture, fixture->leases[1], 5000));
    assert_null(use_store(fixture, fixture->leases[2], 6000));
    assert_null(use_store(fixture, fixture->other, 7000));
    assert_int_equal(*bytes, 18000);
    assert_false(agent_backlog_has_share(
        &fixture->runs->batches.backlogs, fixture->other->deployment_id,
        AGENT_BACKLOG_DEDICATED, 0, AGENT_BATCH_MAX_DEDICATED / 2));
    agent_runner_request_reply(queue, fixture->leases[1], "{}", NULL);
    assert_int_equal(*bytes, 13000);
    agent_run_end_set_state(fixture->runs, fixture->leases[2],
                            AGENT_LEASE_ENDED);
    assert_int_equal(*bytes, 7000);
    agent_run_end_detach(fixture->runs, fixture->other);
    assert_int_equal(*bytes, 0);
    assert_true(agent_backlog_has_share(
        &fixture->runs->batches.backlogs, fixture->other->deployment_id,
        AGENT_BACKLOG_DEDICATED, 0, AGENT_BATCH_MAX_DEDICATED));
    assert_ptr_equal(find(fixture, NULL), fixture->leases[0]);
}

static void long_arguments_do_not_wait_for_the_runner(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_runner_request_queue_t *queue = &fixture->runs->requests;

    get_state(fixture, fixture->leases[0]);
    assert_null(use_store(fixture, fixture->leases[1], 100));
    assert_null(find(fixture, fixture->runner));
    assert_null(use_store(fixture, fixture->leases[2], 5000));
    assert_null(use_store(fixture, fixture->leases[3], 5000));
    assert_ptr_equal(find(fixture, fixture->runner), fixture->leases[2]);
    agent_runner_request_postpone(queue, fixture->leases[2]);
    assert_ptr_equal(find(fixture, fixture->runner), fixture->leases[3]);
    agent_runner_request_reply(queue, fixture->leases[3], "{}", NULL);
    agent_runner_request_reply(queue, fixture->leases[2], "{}", NULL);
    assert_null(find(fixture, fixture->runner));
    assert_ptr_equal(find(fixture, NULL), fixture->leases[0]);
}

static void a_request_to_the_store_waits_for_no_record(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_lease_t *lease = fixture->leases[0];

    lease->records.sent = 5;
    assert_null(use_store(fixture, lease, 100));
    assert_ptr_equal(find(fixture, NULL), lease);
}

static void sixteen_records_of_a_run_may_wait_for_their_reply(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_lease_t *lease = fixture->leases[0];

    for (int i = 0; i < AGENT_ACK_MAX; i++) {
        assert_null(agent_ack_take(lease));
    }
    assert_non_null(agent_ack_take(lease));
    assert_null(agent_ack_take(fixture->leases[1]));
    agent_ack_reply(lease, 0);
    assert_non_null(agent_ack_take(lease));
    expect_reply(lease, "id", "0");
    assert_null(agent_ack_take(lease));
    assert_non_null(agent_ack_take(lease));
    agent_run_end_detach(fixture->runs, lease);
    agent_ack_reply(lease, 1);
    assert_int_equal(agent_buffer_length(&fixture->runner->input), 0);
}

static void replies_that_are_read_count_though_later_ones_are_not(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_lease_t *lease = fixture->leases[0];
    agent_runner_t *runner = fixture->runner;
    apr_size_t first;

    for (int i = 0; i < AGENT_ACK_MAX; i++) {
        assert_null(agent_ack_take(lease));
    }
    agent_ack_reply(lease, 0);
    first = agent_buffer_length(&runner->input);
    agent_ack_reply(lease, 1);
    assert_non_null(agent_ack_take(lease));
    agent_buffer_consume(&runner->input, first);
    runner->written += first;
    assert_null(agent_ack_take(lease));
    assert_non_null(agent_ack_take(lease));
}

static void requests_that_the_database_refuses_are_counted(void **state)
{
    fixture_t *fixture = make_requests(*state);
    agent_lease_t *lease = fixture->leases[0];

    lease->request.refused = AGENT_RUNNER_REQUEST_MAX_REFUSED + 1;
    assert_non_null(take(fixture, lease, "state.get", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_state_is_read_part_by_part),
        CHECK_TEST(a_run_without_a_state_has_an_empty_one),
        CHECK_TEST(the_checkpoint_is_that_of_the_start_line),
        CHECK_TEST(a_run_may_not_request_before_it_read_the_last_reply),
        CHECK_TEST(a_run_may_send_few_requests_that_are_refused),
        CHECK_TEST(runners_take_turns_and_runs_keep_their_order),
        CHECK_TEST(a_runner_without_room_is_passed_over),
        CHECK_TEST(unread_input_leaves_no_room_for_a_part),
        CHECK_TEST(a_request_that_failed_is_tried_after_the_others),
        CHECK_TEST(a_run_that_is_taken_from_its_runner_does_not_wait),
        CHECK_TEST(the_request_of_a_run_that_has_ended_is_dropped),
        CHECK_TEST(a_cursor_that_is_too_long_is_not_kept),
        CHECK_TEST(a_request_for_records_keeps_its_arguments),
        CHECK_TEST(a_request_for_records_waits_for_those_sent_before),
        CHECK_TEST(a_request_that_waits_for_records_can_be_dropped),
        CHECK_TEST(long_arguments_are_counted_until_the_reply),
        CHECK_TEST(long_arguments_do_not_wait_for_the_runner),
        CHECK_TEST(a_request_to_the_store_waits_for_no_record),
        CHECK_TEST(sixteen_records_of_a_run_may_wait_for_their_reply),
        CHECK_TEST(replies_that_are_read_count_though_later_ones_are_not),
        CHECK_TEST(requests_that_the_database_refuses_are_counted),
    };

    return CHECK_RUN(tests);
}

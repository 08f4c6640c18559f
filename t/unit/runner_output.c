/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/run/output.c runners/builtin/io/wire.c */
/* OBJECTS: core/buffer.c */
/* Flow control of a run's output: the lines that need credit, and those of a
 * request and a grant. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "runners/builtin/run/output.h"

typedef struct fixture_t {
    runner_wire_t wire;
    runner_output_t output;
} fixture_t;

static fixture_t *make_fixture(apr_pool_t *pool)
{
    fixture_t *fixture = apr_pcalloc(pool, sizeof(*fixture));

    agent_buffer_init(&fixture->wire.out, pool);
    runner_output_init(&fixture->output, &fixture->wire, "r", 3, pool);
    return fixture;
}

static void add(fixture_t *fixture, char letter, size_t length,
                bool is_optional)
{
    runner_wire_begin(&fixture->wire, "%s", "");
    memset(agent_buffer_reserve(&fixture->wire.out, length), letter, length);
    agent_buffer_commit(&fixture->wire.out, length);
    assert_int_equal(runner_wire_end(&fixture->wire), APR_SUCCESS);
    runner_output_add(&fixture->output, is_optional);
}

/* Adds a line of that length, without its newline. */
static void add_line(fixture_t *fixture, char letter, size_t length)
{
    add(fixture, letter, length, false);
}

static void add_event(fixture_t *fixture, char letter, size_t length)
{
    add(fixture, letter, length, true);
}

static size_t backlog_of(const fixture_t *fixture)
{
    return agent_buffer_length(&fixture->output.backlog);
}

/* The unsent text of the wire, which it clears. */
static const char *take_unsent(fixture_t *fixture, apr_pool_t *pool)
{
    const char *text = apr_pstrdup(pool, agent_buffer_text(&fixture->wire.out));

    agent_buffer_clear(&fixture->wire.out);
    return text;
}

static void short_lines_are_sent_up_to_the_credit(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    add_line(fixture, 'a', RUNNER_LINE_LONG);
    assert_int_equal(backlog_of(fixture), 0);
    assert_int_equal(fixture->output.sent, RUNNER_LINE_LONG + 1);
    add_line(fixture, 'b', RUNNER_LINE_LONG);
    add_line(fixture, 'c', RUNNER_LINE_LONG);
    assert_int_equal(backlog_of(fixture), 0);
    add_line(fixture, 'd', RUNNER_LINE_LONG);
    assert_int_equal(backlog_of(fixture), RUNNER_LINE_LONG + 1);
    assert_int_equal(fixture->wire.backlog, RUNNER_LINE_LONG + 1);
    assert_int_equal(runner_wire_unsent(&fixture->wire),
                     3 * (RUNNER_LINE_LONG + 1));
}

static void lines_after_a_long_line_keep_their_order(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    add_line(fixture, 'a', RUNNER_LINE_LONG + 1);
    add_line(fixture, 'b', 1);
    assert_int_equal(runner_wire_unsent(&fixture->wire), 0);
    assert_true(runner_output_has_backlog(&fixture->output));
    assert_true(runner_output_is_blocked(&fixture->output, 0));
}

static void a_request_is_for_one_long_line(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    add_line(fixture, 'a', RUNNER_LINE_LONG + 1);
    add_line(fixture, 'b', 1);
    runner_output_request(&fixture->output);
    assert_string_equal(take_unsent(fixture, *state),
                        "{\"type\":\"want\",\"run_id\":\"r\",\"epoch\":3,"
                        "\"bytes\":65538}\n");
    runner_output_request(&fixture->output);
    assert_int_equal(runner_wire_unsent(&fixture->wire), 0);
}

static void a_request_is_for_several_short_lines(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    fixture->output.sent = RUNNER_CREDIT_MAX;
    add_line(fixture, 'a', 9);
    add_line(fixture, 'b', 9);
    add_line(fixture, 'c', RUNNER_LINE_LONG);
    runner_output_request(&fixture->output);
    assert_int_equal(fixture->output.requested, 20);
}

static void an_empty_backlog_requests_nothing(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    runner_output_request(&fixture->output);
    assert_int_equal(runner_wire_unsent(&fixture->wire), 0);
}

static void a_grant_sends_the_requested_and_the_short_lines_after_them(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    const char *text;

    add_line(fixture, 'a', RUNNER_LINE_LONG + 1);
    add_line(fixture, 'b', 1);
    add_line(fixture, 'c', RUNNER_LINE_LONG + 1);
    add_line(fixture, 'd', 1);
    runner_output_request(&fixture->output);
    take_unsent(fixture, *state);
    runner_output_grant(&fixture->output);
    text = take_unsent(fixture, *state);
    assert_int_equal(strlen(text), RUNNER_LINE_LONG + 4);
    assert_string_equal(text + strlen(text) - 4, "a\nb\n");
    assert_int_equal(fixture->output.sent, RUNNER_LINE_LONG + 4);
    assert_int_equal(backlog_of(fixture), RUNNER_LINE_LONG + 4);
    assert_int_equal(fixture->wire.backlog, RUNNER_LINE_LONG + 4);
    assert_int_equal(fixture->output.requested, 0);
}

static void a_grant_without_a_request_changes_nothing(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    fixture->output.sent = RUNNER_CREDIT_MAX - 9;
    runner_output_grant(&fixture->output);
    assert_int_equal(fixture->output.sent, RUNNER_CREDIT_MAX - 9);
    add_line(fixture, 'a', 10);
    runner_output_grant(&fixture->output);
    assert_true(runner_output_has_backlog(&fixture->output));
    assert_int_equal(runner_wire_unsent(&fixture->wire), 0);
}

static void large_runs_are_blocked_while_all_backlogs_are_full(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    assert_false(runner_output_is_blocked(&fixture->output, SIZE_MAX));
    fixture->wire.backlog = RUNNER_BACKLOG_MAX;
    assert_true(
        runner_output_is_blocked(&fixture->output, RUNNER_LINE_LONG + 1));
    assert_false(runner_output_is_blocked(&fixture->output, RUNNER_LINE_LONG));
}

static void a_cancel_keeps_requested_lines_and_those_that_are_not_optional(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    const char *text;

    add_event(fixture, 'a', RUNNER_LINE_LONG + 1);
    add_event(fixture, 'b', RUNNER_LINE_LONG + 1);
    add_line(fixture, 'c', 1);
    add_event(fixture, 'd', 1);
    runner_output_request(&fixture->output);
    take_unsent(fixture, *state);
    runner_output_cancel(&fixture->output);
    assert_int_equal(backlog_of(fixture), RUNNER_LINE_LONG + 4);
    assert_int_equal(fixture->wire.backlog, RUNNER_LINE_LONG + 4);
    runner_output_grant(&fixture->output);
    text = take_unsent(fixture, *state);
    assert_int_equal(strlen(text), RUNNER_LINE_LONG + 4);
    assert_string_equal(text + strlen(text) - 4, "a\nc\n");
    assert_false(runner_output_has_backlog(&fixture->output));
    assert_int_equal(fixture->wire.backlog, 0);
}

static void a_cancel_without_a_request_drops_every_optional_line(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    add_event(fixture, 'a', RUNNER_LINE_LONG + 1);
    runner_output_cancel(&fixture->output);
    assert_false(runner_output_has_backlog(&fixture->output));
    assert_int_equal(fixture->wire.backlog, 0);
}

static void after_a_cancel_no_event_follows_one_without_credit(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    runner_output_cancel(&fixture->output);
    add_event(fixture, 'a', 1);
    add_event(fixture, 'b', RUNNER_LINE_LONG + 1);
    add_event(fixture, 'c', 1);
    add_line(fixture, 'd', 1);
    assert_string_equal(take_unsent(fixture, *state), "a\nd\n");
    add_line(fixture, 'e', RUNNER_LINE_LONG + 1);
    assert_int_equal(backlog_of(fixture), RUNNER_LINE_LONG + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(short_lines_are_sent_up_to_the_credit),
        CHECK_TEST(lines_after_a_long_line_keep_their_order),
        CHECK_TEST(a_request_is_for_one_long_line),
        CHECK_TEST(a_request_is_for_several_short_lines),
        CHECK_TEST(an_empty_backlog_requests_nothing),
        CHECK_TEST(a_grant_sends_the_requested_and_the_short_lines_after_them),
        CHECK_TEST(a_grant_without_a_request_changes_nothing),
        CHECK_TEST(large_runs_are_blocked_while_all_backlogs_are_full),
        CHECK_TEST(
            a_cancel_keeps_requested_lines_and_those_that_are_not_optional),
        CHECK_TEST(a_cancel_without_a_request_drops_every_optional_line),
        CHECK_TEST(after_a_cancel_no_event_follows_one_without_credit),
    };

    return CHECK_RUN(tests);
}

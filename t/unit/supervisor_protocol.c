/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/runner/protocol/protocol.c */
/* OBJECTS: supervisor/runner/protocol/protocol_fields.c */
/* OBJECTS: supervisor/runner/protocol/protocol_record.c core/ */
/* Lines from runners; see supervisor/runner/protocol/protocol.h. The other
 * types are in t/supervisor/units.c. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/supervisor/runner/protocol/protocol.h"

#define RUN "\"run_id\":\"01890000-0000-7000-8000-00000000abcd\",\"epoch\":3"
#define ID  "\"checkpoint_id\":\"01890000-0000-7000-8000-000000000001\""

static const char *read_line(agent_line_t *line, const char *text)
{
    memset(line, 0, sizeof(*line));
    return agent_protocol_read(line, text, strlen(text));
}

static void an_end_says_where_the_run_stopped(void **state)
{
    static const char *const bad[] = {"\"next\":{}", "\"interrupts\":[]",
                                      "\"head\":\"x\"", "\"head\":1"};
    agent_line_t line;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_non_null(read_line(&line,
                                  apr_pstrcat(*state,
                                              "{\"type\":\"end\"," RUN
                                              ",\"status\":\"drained\",",
                                              bad[i], "}", NULL)));
    }
    assert_null(
        read_line(&line,
                  "{\"type\":\"end\"," RUN ",\"status\":\"drained\","
                  "\"interrupts\":{\"t\":[]},\"next\":[\"agent\"],"
                  "\"head\":\"01890000-0000-7000-8000-000000000001\"}"));
    assert_true(line.is_drained);
    assert_false(line.success);
    assert_null(read_line(&line,
                          "{\"type\":\"end\"," RUN ",\"status\":\"success\","
                          "\"interrupts\":null,\"next\":null,\"head\":null}"));
    assert_false(line.is_drained);
}

static const char *make_task(const char *ns, const char *task, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "{\"type\":\"task\"," RUN "," ID, ns,
                       ",\"task\":", task, "}", NULL);
}

static void a_task_names_its_checkpoint_and_has_an_id(void **state)
{
    static const char *const bad[] = {"null",
                                      "[]",
                                      "{}",
                                      "{\"id\":1}",
                                      "{\"id\":\"\"}",
                                      "{\"id\":\"a b\"}",
                                      "{\"x\":{\"id\":\"a\"}}",
                                      "{\"id\":\"a\",\"\\u0069d\":null}"};
    static const char *const bad_ns[] = {",\"ns\":1", ",\"ns\":\"\\n\"",
                                         ",\"ns\":\"a\\u2028\""};
    char *longest = apr_psprintf(*state, "%0*d", AGENT_PROTOCOL_MAX_TASK_ID, 1);
    char *ns = apr_psprintf(*state, "%0*d", (int)AGENT_PROTOCOL_MAX_NS, 1);
    agent_line_t line;

    assert_null(read_line(&line, make_task("", "{\"id\":\"a\"}", *state)));
    assert_int_equal(line.type, AGENT_LINE_TASK);
    assert_int_equal(line.key.epoch, 3);
    assert_null(read_line(
        &line,
        make_task(apr_pstrcat(*state, ",\"ns\":\"", ns, "\"", NULL),
                  apr_pstrcat(*state, "{\"id\":\"", longest, "\"}", NULL),
                  *state)));
    assert_non_null(
        read_line(&line,
                  make_task(apr_pstrcat(*state, ",\"ns\":\"1", ns, "\"", NULL),
                            "{\"id\":\"a\"}", *state)));
    assert_non_null(read_line(
        &line,
        make_task("", apr_pstrcat(*state, "{\"id\":\"1", longest, "\"}", NULL),
                  *state)));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_non_null(read_line(&line, make_task("", bad[i], *state)));
    }
    for (size_t i = 0; i < sizeof(bad_ns) / sizeof(bad_ns[0]); i++) {
        assert_non_null(
            read_line(&line, make_task(bad_ns[i], "{\"id\":\"a\"}", *state)));
    }
    assert_non_null(read_line(
        &line, "{\"type\":\"task\"," RUN ",\"task\":{\"id\":\"a\"}}"));
}

static const char *make_checkpoint(const char *ns, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "{\"type\":\"checkpoint\"," RUN "," ID, ns,
                       ",\"parent\":null,\"values\":{},\"metadata\":{},"
                       "\"next\":[],\"tasks\":[]}",
                       NULL);
}

static void a_checkpoint_may_ask_for_a_reply(void **state)
{
    agent_line_t line;

    assert_null(read_line(&line, make_checkpoint("", *state)));
    assert_int_equal(line.ack, -1);
    assert_null(read_line(&line, make_checkpoint(",\"ack\":null", *state)));
    assert_int_equal(line.ack, -1);
    assert_null(read_line(&line, make_checkpoint(",\"ack\":7", *state)));
    assert_int_equal(line.ack, 7);
    assert_string_equal(
        read_line(&line, make_checkpoint(",\"ack\":-7", *state)),
        "has no valid ack");
}

static void a_checkpoint_may_have_a_namespace(void **state)
{
    static const char *const good[] = {"", ",\"ns\":null", ",\"ns\":\"\"",
                                       ",\"ns\":\"a:1|b:2\""};
    static const char *const bad[] = {",\"ns\":1",          ",\"ns\":{}",
                                      ",\"ns\":[\"a\"]",    ",\"ns\":false",
                                      ",\"ns\":\"\\n\"",    ",\"ns\":\"a\x7f\"",
                                      ",\"ns\":\"\\u0061\""};
    char *longest = apr_psprintf(*state, "%0*d", (int)AGENT_PROTOCOL_MAX_NS, 1);
    agent_line_t line;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_null(read_line(&line, make_checkpoint(good[i], *state)));
        assert_int_equal(line.type, AGENT_LINE_CHECKPOINT);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_non_null(read_line(&line, make_checkpoint(bad[i], *state)));
    }
    assert_null(read_line(
        &line,
        make_checkpoint(apr_pstrcat(*state, ",\"ns\":\"", longest, "\"", NULL),
                        *state)));
    assert_non_null(read_line(
        &line,
        make_checkpoint(apr_pstrcat(*state, ",\"ns\":\"1", longest, "\"", NULL),
                        *state)));
}

static void a_checkpoint_may_name_its_format(void **state)
{
    static const char *const wrong[] = {"1", "\"\"", "\"a b\"", "{}"};
    agent_line_t line;

    assert_null(
        read_line(&line, make_checkpoint(",\"format\":\"python\"", *state)));
    assert_null(read_line(&line, make_checkpoint(",\"format\":null", *state)));
    for (int i = 0; i < 4; i++) {
        assert_string_equal(
            read_line(&line,
                      make_checkpoint(
                          apr_pstrcat(*state, ",\"format\":", wrong[i], NULL),
                          *state)),
            "has no valid format");
    }
}

static void a_member_is_there_once(void **state)
{
    agent_line_t line;

    assert_string_equal(
        read_line(&line,
                  make_checkpoint(",\"format\":\"a\",\"format\":null", *state)),
        "has a member twice");
    assert_null(
        read_line(&line, make_checkpoint(",\"other\":{\"format\":1}", *state)));
}

static void a_runner_names_the_graph_that_it_imports(void **state)
{
    agent_line_t line;

    assert_null(
        read_line(&line, "{\"type\":\"importing\",\"graph_id\":\"a\\u0062\"}"));
    assert_int_equal(line.type, AGENT_LINE_IMPORTING);
    assert_int_equal(line.graph_length, 7);
    assert_null(read_line(&line, "{\"type\":\"importing\",\"graph_id\":null}"));
    assert_null(line.graph);
    assert_non_null(
        read_line(&line, "{\"type\":\"importing\",\"graph_id\":1}"));
}

static void a_pong_may_say_how_long_the_runner_is_busy(void **state)
{
    agent_line_t line;

    assert_null(
        read_line(&line, "{\"type\":\"pong\",\"id\":1,\"busy_ms\":70000}"));
    assert_int_equal(line.busy_ms, 70000);
    assert_null(
        read_line(&line, "{\"type\":\"pong\",\"id\":1,\"busy_ms\":null}"));
    assert_int_equal(line.busy_ms, 0);
    assert_non_null(
        read_line(&line, "{\"type\":\"pong\",\"id\":1,\"busy_ms\":-1}"));
    assert_non_null(
        read_line(&line, "{\"type\":\"pong\",\"id\":1,\"busy_ms\":\"1\"}"));
}

static void a_pong_may_ask_for_a_replacement(void **state)
{
    agent_line_t line;

    assert_null(read_line(&line, "{\"type\":\"pong\",\"id\":1}"));
    assert_false(line.wants_replacement);
    assert_null(
        read_line(&line, "{\"type\":\"pong\",\"id\":1,\"spent\":true}"));
    assert_true(line.wants_replacement);
    assert_null(
        read_line(&line, "{\"type\":\"pong\",\"id\":1,\"spent\":false}"));
    assert_false(line.wants_replacement);
    assert_null(
        read_line(&line, "{\"type\":\"pong\",\"id\":1,\"spent\":null}"));
    assert_false(line.wants_replacement);
    assert_non_null(
        read_line(&line, "{\"type\":\"pong\",\"id\":1,\"spent\":\"t\"}"));
}

static bool is_event(const char *name, apr_pool_t *pool)
{
    agent_line_t line;

    return read_line(&line,
                     apr_pstrcat(pool,
                                 "{\"type\":\"event\"," RUN ",\"event\":\"",
                                 name, "\",\"data\":null}", NULL))
        == NULL;
}

static void ready_has_no_reserved_name(void **state)
{
    agent_line_t line;

    assert_string_equal(read_line(&line,
                                  "{\"type\":\"ready\",\"graphs\":{},"
                                  "\"slots\":1,\"features\":[]}"),
                        "has features, a reserved name");
    assert_null(read_line(&line,
                          "{\"type\":\"ready\",\"graphs\":{},"
                          "\"slots\":1,\"features\":null}"));
}

static void names_of_events_are_a_line_of_an_event_stream(void **state)
{
    static const char *const good[] = {
        "values", "values|a:1|b:2", "values|step one:1|\xc3\xbc|\xe2\x82\xac",
        "values|\xf0\x9f\x98\x80", "x|\xc2\xa0|\xe2\x80\xa7"};
    static const char *const bad[] = {"",
                                      " values",
                                      "values ",
                                      "a\\nb",
                                      "a\\u000ab",
                                      "a\\\"b",
                                      "a\x7f",
                                      "a\xc2\x85"
                                      "b",
                                      "\xc2\x80",
                                      "a\xe2\x80\xa8"
                                      "b",
                                      "a\xe2\x80\xa9",
                                      "a\rb",
                                      "a\x1f"
                                      "b",
                                      "a\xff"};
    char *longest = apr_psprintf(*state, "%0*d", (int)AGENT_PROTOCOL_MAX_EVENT,
                                 1);

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(is_event(good[i], *state));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(is_event(bad[i], *state));
    }
    assert_true(is_event(longest, *state));
    assert_false(is_event(apr_pstrcat(*state, longest, "0", NULL), *state));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(an_end_says_where_the_run_stopped),
        CHECK_TEST(a_checkpoint_may_name_its_format),
        CHECK_TEST(a_member_is_there_once),
        CHECK_TEST(a_runner_names_the_graph_that_it_imports),
        CHECK_TEST(a_pong_may_say_how_long_the_runner_is_busy),
        CHECK_TEST(a_pong_may_ask_for_a_replacement),
        CHECK_TEST(ready_has_no_reserved_name),
        CHECK_TEST(names_of_events_are_a_line_of_an_event_stream),
        CHECK_TEST(a_checkpoint_may_ask_for_a_reply),
        CHECK_TEST(a_checkpoint_may_have_a_namespace),
        CHECK_TEST(a_task_names_its_checkpoint_and_has_an_id),
    };

    return CHECK_RUN(tests);
}

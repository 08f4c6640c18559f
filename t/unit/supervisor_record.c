/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/runner/protocol/protocol.c */
/* OBJECTS: supervisor/runner/protocol/protocol_fields.c */
/* OBJECTS: supervisor/runner/protocol/protocol_record.c core/ */
/* Records of the graph library; see supervisor/runner/protocol/protocol.h. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/supervisor/runner/protocol/protocol.h"

#define RUN "\"run_id\":\"01890000-0000-7000-8000-00000000abcd\",\"epoch\":3"
#define ID  "\"01890000-0000-7000-8000-000000000001\""
#define BLOB                                                                   \
    "{\"type\":\"blob\"," RUN ",\"digest\":" ID ",\"value_type\":\"msgpack\""
#define PUT                                                                    \
    "{\"type\":\"put\"," RUN ",\"ns\":\"\",\"checkpoint_id\":" ID              \
    ",\"parent\":null"
#define VALUES ",\"checkpoint\":{},\"metadata\":{},\"channels\":{}"
#define WRITES                                                                 \
    "{\"type\":\"put_writes\"," RUN ",\"ns\":\"a|b\",\"checkpoint_id\":" ID

static const char *read_line(agent_line_t *line, const char *text)
{
    memset(line, 0, sizeof(*line));
    return agent_protocol_read(line, text, strlen(text));
}

static void expect_record(const char *text, apr_int64_t ack)
{
    agent_line_t line;

    assert_null(read_line(&line, text));
    assert_int_equal(line.type, AGENT_LINE_RECORD);
    assert_int_equal(line.ack, ack);
    assert_int_equal(line.key.epoch, 3);
}

static void a_record_of_each_type_is_parsed(void **state)
{
    expect_record(BLOB ",\"base64\":\"\"}", -1);
    expect_record(BLOB ",\"base64\":\"gaFh/+8=\",\"part\":15,\"parts\":16}",
                  -1);
    expect_record(BLOB ",\"text\":\"[1,\\\"a\\\"]\"}", -1);
    expect_record(PUT VALUES "}", -1);
    expect_record(PUT VALUES ",\"ack\":null}", -1);
    expect_record(PUT VALUES ",\"ack\":0}", 0);
    expect_record(WRITES ",\"task_id\":\"x\",\"task_path\":\"\",\"writes\":[],"
                         "\"ack\":7}",
                  7);
}

static void a_record_that_breaks_the_protocol_is_refused(void **state)
{
    static const char *const bad[] = {
        "{\"type\":\"blob\",\"digest\":" ID
        ",\"value_type\":\"x\",\"text\":\"\"}",
        "{\"type\":\"blob\"," RUN ",\"digest\":\"1\",\"value_type\":\"x\","
        "\"text\":\"\"}",
        "{\"type\":\"blob\"," RUN ",\"value_type\":\"x\",\"text\":\"\"}",
        "{\"type\":\"blob\"," RUN ",\"digest\":" ID
        ",\"value_type\":\"\",\"text\":\"\"}",
        "{\"type\":\"blob\"," RUN ",\"digest\":" ID ",\"text\":\"\"}",
        BLOB "}",
        BLOB ",\"text\":\"\",\"base64\":\"\"}",
        BLOB ",\"text\":null}",
        BLOB ",\"text\":{}}",
        BLOB ",\"base64\":1}",
        BLOB ",\"base64\":\"abc\"}",
        BLOB ",\"base64\":\"a===\"}",
        BLOB ",\"base64\":\"====\"}",
        BLOB ",\"base64\":\"ab=c\"}",
        BLOB ",\"base64\":\"ab\\/c\"}",
        BLOB ",\"base64\":\"ab-_\"}",
        BLOB ",\"base64\":\"ab c\"}",
        BLOB ",\"text\":\"\",\"part\":1,\"parts\":1}",
        BLOB ",\"text\":\"\",\"part\":0,\"parts\":0}",
        BLOB ",\"text\":\"\",\"part\":0,\"parts\":17}",
        BLOB ",\"text\":\"\",\"part\":-1,\"parts\":1}",
        BLOB ",\"text\":\"\",\"part\":0}",
        BLOB ",\"text\":\"\",\"parts\":1}",
        PUT "}",
        PUT ",\"checkpoint\":[],\"metadata\":{},\"channels\":{}}",
        PUT ",\"checkpoint\":{},\"metadata\":[],\"channels\":{}}",
        PUT ",\"checkpoint\":{},\"metadata\":{},\"channels\":null}",
        PUT VALUES ",\"ack\":-1}",
        PUT VALUES ",\"ack\":\"1\"}",
        "{\"type\":\"put\"," RUN ",\"ns\":\"\",\"checkpoint_id\":" ID VALUES
        "}",
        "{\"type\":\"put\"," RUN ",\"checkpoint_id\":" ID
        ",\"parent\":null" VALUES "}",
        "{\"type\":\"put\"," RUN ",\"ns\":1,\"checkpoint_id\":" ID
        ",\"parent\":null" VALUES "}",
        "{\"type\":\"put\"," RUN ",\"ns\":\"\",\"parent\":null" VALUES "}",
        WRITES ",\"task_id\":\"x\",\"task_path\":\"\"}",
        WRITES ",\"task_id\":\"x\",\"writes\":[]}",
        WRITES ",\"task_id\":\"\",\"task_path\":\"\",\"writes\":[]}",
        WRITES ",\"task_id\":1,\"task_path\":\"\",\"writes\":[]}",
        WRITES ",\"task_id\":\"x\",\"task_path\":\"\",\"writes\":{}}"};
    agent_line_t line;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (read_line(&line, bad[i]) == NULL) {
            fail_msg("accepted: %s", bad[i]);
        }
    }
}

/* The text repeated, after head and before tail. */
static char *repeat(const char *head, const char *text, apr_size_t count,
                    const char *tail, apr_pool_t *pool)
{
    apr_size_t length = strlen(text);
    char *line = apr_palloc(pool,
                            strlen(head) + length * count + strlen(tail) + 1);
    char *at = line + strlen(head);

    memcpy(line, head, strlen(head));
    for (apr_size_t i = 0; i < count; i++, at += length) {
        memcpy(at, text, length);
    }
    memcpy(at, tail, strlen(tail) + 1);
    return line;
}

/* The text may occur `most` times, and once more is refused. */
static void expect_most(const char *head, const char *text, apr_size_t most,
                        const char *tail, apr_pool_t *pool)
{
    agent_line_t line;

    assert_null(read_line(&line, repeat(head, text, most, tail, pool)));
    assert_non_null(read_line(&line, repeat(head, text, most + 1, tail, pool)));
}

static void a_part_has_at_most_4_mib_however_it_is_written(void **state)
{
    static const apr_size_t MOST = AGENT_PROTOCOL_MAX_PART;
    static const char TEXT[] = BLOB ",\"text\":\"";

    expect_most(TEXT, "a", MOST, "\"}", *state);
    expect_most(TEXT, "\xc3\xa9", MOST / 2, "\"}", *state);
    /* A line has room for less than 4 Mi of these. */
    expect_most(repeat(TEXT, "a", MOST - 100, "", *state), "\\n", 100, "\"}",
                *state);
    /* 4 MiB are one byte more than whole groups of three. */
    expect_most(BLOB ",\"base64\":\"", "abcd", MOST / 3, "ab==\"}", *state);
}

static void escapes_count_as_the_bytes_for_which_they_stand(void **state)
{
    static const char *const escapes[] = {"\\u0041", "\\u00e9", "\\u20ac",
                                          "\\ud83d\\ude00"};
    static const char TEXT[] = BLOB ",\"text\":\"";

    for (apr_size_t i = 0; i < 4; i++) {
        apr_size_t count = 100000;
        const char *head = repeat(TEXT, escapes[i], count, "", *state);

        expect_most(head, "a", AGENT_PROTOCOL_MAX_PART - (i + 1) * count, "\"}",
                    *state);
    }
}

static void a_text_leaves_room_for_the_members_of_a_reply(void **state)
{
    /* "\\u0001" stands for one byte; the database writes it the same way. */
    apr_size_t most = AGENT_PROTOCOL_MAX_LINE - 1024;

    expect_most(repeat(BLOB ",\"text\":\"", "x", most % 6, "", *state),
                "\\u0001", most / 6, "\"}", *state);
}

static void texts_have_limits(void **state)
{
    static const char TASK[] = ",\"task_path\":\"\",\"writes\":[]}";

    expect_most("{\"type\":\"put\"," RUN ",\"checkpoint_id\":" ID
                ",\"parent\":null" VALUES ",\"ns\":\"",
                "n", AGENT_PROTOCOL_MAX_NS, "\"}", *state);
    expect_most(WRITES ",\"task_id\":\"", "t", AGENT_PROTOCOL_MAX_TASK_ID,
                apr_pstrcat(*state, "\"", TASK, NULL), *state);
    expect_most(WRITES ",\"task_id\":\"t\",\"writes\":[],\"task_path\":\"", "p",
                1024, "\"}", *state);
    expect_most("{\"type\":\"blob\"," RUN ",\"digest\":" ID
                ",\"text\":\"\",\"value_type\":\"",
                "v", 32, "\"}", *state);
}

static void a_request_has_arguments_of_at_most_4_kib(void **state)
{
    agent_line_t line;

    assert_null(read_line(&line,
                          "{\"type\":\"request\"," RUN
                          ",\"id\":1,\"op\":\"x\",\"args\":{\"a\":1}}"));
    assert_int_equal(line.args_length, 7);
    assert_memory_equal(line.args, "{\"a\":1}", 7);
    assert_null(read_line(
        &line, "{\"type\":\"request\"," RUN ",\"id\":1,\"op\":\"x\"}"));
    assert_int_equal(line.args_length, 0);
    assert_non_null(read_line(&line,
                              "{\"type\":\"request\"," RUN
                              ",\"id\":1,\"op\":\"x\",\"args\":[]}"));
    expect_most("{\"type\":\"request\"," RUN
                ",\"id\":1,\"op\":\"x\",\"args\":{\"a\":\"",
                "a", AGENT_RUNNER_REQUEST_MAX_ARGS - strlen("{\"a\":\"\"}"),
                "\"}}", *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_record_of_each_type_is_parsed),
        CHECK_TEST(a_record_that_breaks_the_protocol_is_refused),
        CHECK_TEST(a_part_has_at_most_4_mib_however_it_is_written),
        CHECK_TEST(escapes_count_as_the_bytes_for_which_they_stand),
        CHECK_TEST(a_text_leaves_room_for_the_members_of_a_reply),
        CHECK_TEST(texts_have_limits),
        CHECK_TEST(a_request_has_arguments_of_at_most_4_kib),
    };

    return CHECK_RUN(tests);
}

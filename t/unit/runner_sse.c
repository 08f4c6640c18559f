/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/model/sse.c core/buffer.c */
/* Parsing server-sent events, from input in pieces of any size. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "runners/builtin/model/sse.h"

typedef struct record_t {
    apr_pool_t *pool;
    /* "name=data;" of each event. */
    const char *text;
    int stop_after;
} record_t;

static bool record_event(void *baton, const char *name, const char *data,
                         size_t length)
{
    record_t *record = baton;

    assert_int_equal(strlen(data), length);
    record->text = apr_pstrcat(record->pool, record->text, name, "=", data, ";",
                               NULL);
    return --record->stop_after != 0;
}

/* Parses the bytes in two pieces. */
static const char *read_cut(const char *bytes, size_t length, size_t cut,
                            apr_pool_t *pool)
{
    record_t record = {pool, "", -1};
    runner_sse_t sse;

    runner_sse_init(&sse, record_event, &record, pool);
    assert_int_equal(runner_sse_feed(&sse, bytes, cut), APR_SUCCESS);
    assert_int_equal(runner_sse_feed(&sse, bytes + cut, length - cut),
                     APR_SUCCESS);
    return record.text;
}

static const char *read_all(const char *bytes, apr_pool_t *pool)
{
    return read_cut(bytes, strlen(bytes), 0, pool);
}

static const char *read_bytewise(const char *bytes, apr_pool_t *pool)
{
    record_t record = {pool, "", -1};
    runner_sse_t sse;

    runner_sse_init(&sse, record_event, &record, pool);
    for (; *bytes != '\0'; bytes++) {
        assert_int_equal(runner_sse_feed(&sse, bytes, 1), APR_SUCCESS);
    }
    return record.text;
}

typedef struct row_t {
    const char *bytes;
    const char *events;
} row_t;

static const row_t rows[] = {
    {"data: a\n\n", "message=a;"},
    {"data:a\n\n", "message=a;"},
    {"data:  a \n\n", "message= a ;"},
    {"event: x\ndata: a\n\nevent: y\ndata: b\n\n", "x=a;y=b;"},
    {"event: x\ndata: a\n\ndata: b\n\n", "x=a;message=b;"},
    {"event: x\nevent: y\ndata: a\n\n", "y=a;"},
    {"data: a\ndata: b\ndata\ndata: c\n\n", "message=a\nb\n\nc;"},
    {"data: {\"a\": \"b: c\"}\n\n", "message={\"a\": \"b: c\"};"},
    {": comment\n\ndata: a\n: more\n\n", "message=a;"},
    {"id: 1\nretry: 5\ndata: a\n\n", "message=a;"},
    {"datax: a\n data: b\nDATA: c\n\n", ""},
    {"event: x\n\n\n\n", ""},
    {"data\n\n", "message=;"},
    {"data:\n\n", "message=;"},
    {"\xef\xbb\xbf"
     "data: a\n\n",
     "message=a;"},
    {"data: a\n\n\xef\xbb\xbf"
     "data: b\n\n",
     "message=a;"},
    {"event: \xc3\xbc\ndata: gr\xc3\xbc\xc3\x9f \xf0\x9f\x8c\x8d\n\n",
     "\xc3\xbc=gr\xc3\xbc\xc3\x9f \xf0\x9f\x8c\x8d;"},
    {"data: a\r\n\r\ndata: b\r\n\r\n", "message=a;message=b;"},
    {"event: x\r\ndata: a\r\ndata: b\r\n\r\n", "x=a\nb;"},
    {"data: a\r\rdata: b\r\r", "message=a;message=b;"},
    {"data: a\r\n\rdata: b\n\r\n", "message=a;message=b;"},
    {"data: a\n", ""},
    {"data: a", ""},
    {"", ""},
};

static void events_are_parsed_in_one_piece(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(read_all(rows[i].bytes, *state), rows[i].events);
    }
}

static void events_are_parsed_in_single_bytes(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(read_bytewise(rows[i].bytes, *state),
                            rows[i].events);
    }
}

static void events_are_parsed_when_cut_at_every_position(void **state)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t length = strlen(rows[i].bytes);

        for (size_t cut = 0; cut <= length; cut++) {
            assert_string_equal(read_cut(rows[i].bytes, length, cut, *state),
                                rows[i].events);
        }
    }
}

static void the_receiver_of_events_can_stop_the_parser(void **state)
{
    record_t record = {*state, "", 1};
    runner_sse_t sse;

    runner_sse_init(&sse, record_event, &record, *state);
    assert_int_equal(runner_sse_feed(&sse, "data: a\n\ndata: b\n\n", 18),
                     APR_EGENERAL);
    assert_string_equal(record.text, "message=a;");
}

static void a_line_or_event_that_is_too_long_is_refused(void **state)
{
    record_t record = {*state, "", -1};
    char *line = apr_palloc(*state, RUNNER_SSE_MAX);
    apr_status_t rv = APR_SUCCESS;
    runner_sse_t sse;

    memset(line, 'x', RUNNER_SSE_MAX);
    runner_sse_init(&sse, record_event, &record, *state);
    assert_int_equal(runner_sse_feed(&sse, line, RUNNER_SSE_MAX), APR_SUCCESS);
    assert_int_equal(runner_sse_feed(&sse, "x", 1), APR_ENOSPC);

    runner_sse_init(&sse, record_event, &record, *state);
    memcpy(line, "data: ", 6);
    line[999] = '\n';
    for (int i = 0; i < 2000 && rv == APR_SUCCESS; i++) {
        rv = runner_sse_feed(&sse, line, 1000);
    }
    assert_int_equal(rv, APR_ENOSPC);
    assert_string_equal(record.text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(events_are_parsed_in_one_piece),
        CHECK_TEST(events_are_parsed_in_single_bytes),
        CHECK_TEST(events_are_parsed_when_cut_at_every_position),
        CHECK_TEST(the_receiver_of_events_can_stop_the_parser),
        CHECK_TEST(a_line_or_event_that_is_too_long_is_refused),
    };

    return CHECK_RUN(tests);
}

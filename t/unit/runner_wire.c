/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/io/wire.c core/buffer.c */
/* Lines over pipes, in pieces of any size, without blocking. */
#include "check.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#include "runners/builtin/io/wire.h"

typedef struct ends_t {
    runner_wire_t wire;
    /* The supervisor's ends. */
    int to_wire;
    int from_wire;
} ends_t;

static ends_t *open_wire(apr_pool_t *pool)
{
    ends_t *ends = apr_pcalloc(pool, sizeof(*ends));
    int in[2];
    int out[2];

    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    assert_int_equal(runner_wire_open(&ends->wire, in[0], out[1], pool),
                     APR_SUCCESS);
    ends->to_wire = in[1];
    ends->from_wire = out[0];
    return ends;
}

static void close_wire(ends_t *ends)
{
    close(ends->wire.in_fd);
    close(ends->wire.out_fd);
    close(ends->to_wire);
    close(ends->from_wire);
}

static void send_text(ends_t *ends, const char *text, size_t length)
{
    assert_int_equal(write(ends->to_wire, text, length), length);
    assert_int_equal(runner_wire_read(&ends->wire), APR_SUCCESS);
}

/* Appends the complete lines to *text, each followed by a bar. */
static void take_lines(ends_t *ends, const char **text, apr_pool_t *pool)
{
    const char *line;
    size_t length;

    while ((line = runner_wire_next_line(&ends->wire, &length)) != NULL) {
        assert_int_equal(strlen(line), length);
        *text = apr_pstrcat(pool, *text, line, "|", NULL);
    }
}

static void lines_are_read_when_cut_at_every_position(void **state)
{
    static const char bytes[] = "one\n\ntwo three\nfour\n";
    size_t length = sizeof(bytes) - 1;

    for (size_t cut = 1; cut < length; cut++) {
        ends_t *ends = open_wire(*state);
        const char *text = "";

        send_text(ends, bytes, cut);
        take_lines(ends, &text, *state);
        send_text(ends, bytes + cut, length - cut);
        take_lines(ends, &text, *state);
        assert_string_equal(text, "one||two three|four|");
        close_wire(ends);
    }
}

static void an_empty_pipe_is_not_an_error(void **state)
{
    ends_t *ends = open_wire(*state);
    size_t length;

    assert_int_equal(runner_wire_read(&ends->wire), APR_SUCCESS);
    assert_null(runner_wire_next_line(&ends->wire, &length));
    close_wire(ends);
}

static void a_closed_input_pipe_is_eof(void **state)
{
    ends_t *ends = open_wire(*state);

    close(ends->to_wire);
    assert_int_equal(runner_wire_read(&ends->wire), APR_EOF);
    ends->to_wire = dup(0);
    close_wire(ends);
}

static void unsent_bytes_are_written_later(void **state)
{
    ends_t *ends = open_wire(*state);
    char *text = apr_palloc(*state, 300001);
    size_t total = 0;

    memset(text, 'x', 300000);
    text[300000] = '\0';
    runner_wire_begin(&ends->wire, "{");
    runner_wire_add_json(&ends->wire, NULL);
    agent_buffer_append(&ends->wire.out, text, 300000);
    assert_int_equal(runner_wire_end(&ends->wire), APR_SUCCESS);
    assert_true(runner_wire_is_full(&ends->wire));
    while (total < 300006) {
        ssize_t got;

        assert_int_equal(runner_wire_flush(&ends->wire), APR_SUCCESS);
        got = read(ends->from_wire, text, 300000);
        assert_true(got > 0);
        total += (size_t)got;
    }
    assert_int_equal(total, 300006);
    assert_int_equal(runner_wire_unsent(&ends->wire), 0);
    assert_false(runner_wire_is_full(&ends->wire));
    close_wire(ends);
}

static void a_line_that_is_too_long_is_dropped(void **state)
{
    ends_t *ends = open_wire(*state);
    char *text = apr_palloc(*state, RUNNER_LINE_MAX + 1);

    memset(text, 'x', RUNNER_LINE_MAX + 1);
    runner_wire_begin(&ends->wire, "kept %d", 1);
    assert_int_equal(runner_wire_end(&ends->wire), APR_SUCCESS);
    runner_wire_begin(&ends->wire, "lost");
    agent_buffer_append(&ends->wire.out, text, RUNNER_LINE_MAX - 3);
    assert_int_equal(runner_wire_end(&ends->wire), APR_ENOSPC);
    assert_int_equal(runner_wire_unsent(&ends->wire), strlen("kept 1\n"));
    runner_wire_begin(&ends->wire, "next");
    assert_int_equal(runner_wire_end(&ends->wire), APR_SUCCESS);
    assert_int_equal(runner_wire_unsent(&ends->wire), strlen("kept 1\nnext\n"));
    close_wire(ends);
}

static void a_closed_output_pipe_is_an_error(void **state)
{
    ends_t *ends = open_wire(*state);

    signal(SIGPIPE, SIG_IGN);
    close(ends->from_wire);
    runner_wire_begin(&ends->wire, "x");
    assert_int_equal(runner_wire_end(&ends->wire), APR_SUCCESS);
    assert_int_not_equal(runner_wire_flush(&ends->wire), APR_SUCCESS);
    ends->from_wire = dup(0);
    close_wire(ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(lines_are_read_when_cut_at_every_position),
        CHECK_TEST(an_empty_pipe_is_not_an_error),
        CHECK_TEST(a_closed_input_pipe_is_eof),
        CHECK_TEST(unsent_bytes_are_written_later),
        CHECK_TEST(a_line_that_is_too_long_is_dropped),
        CHECK_TEST(a_closed_output_pipe_is_an_error),
    };

    return CHECK_RUN(tests);
}

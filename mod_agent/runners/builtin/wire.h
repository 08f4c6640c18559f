/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two pipes to the supervisor: lines in, lines out, never blocking. What
 * waits to be written is bounded: while runner_wire_is_full() the caller makes
 * nothing new and reads nothing new. runners/PROTOCOL.md describes the lines.
 */
#ifndef AGENT_RUNNER_WIRE_H
#define AGENT_RUNNER_WIRE_H

#include <stdbool.h>

#include <apr_errno.h>
#include <json-c/json.h>

#include "core/buffer.h"

/* The longest line in either direction, without its newline. */
#define RUNNER_LINE_MAX ((size_t)8 * 1024 * 1024)
/* A longer line needs credit (held.h). */
#define RUNNER_LINE_LONG ((size_t)64 * 1024)
/* Bytes of a run between two `go`; more need credit. */
#define RUNNER_SAID_MAX ((size_t)256 * 1024)
/* Output that may wait before the runner stops making more. */
#define RUNNER_OUTPUT_MAX ((size_t)256 * 1024)
/* Lines held back of all runs (held.h), beyond which only small runs go on. */
#define RUNNER_HELD_MAX ((size_t)16 * 1024 * 1024)

typedef struct runner_wire_t {
    int in_fd;
    int out_fd;
    runner_buffer_t in;
    /* Bytes of in already given out as lines; bytes searched for a newline. */
    size_t in_taken;
    size_t in_searched;
    runner_buffer_t out;
    /* Bytes of out already written; where the line being made began. */
    size_t out_sent;
    size_t line_start;
    /* Bytes of lines that runs hold back. */
    size_t held;
} runner_wire_t;

/* Makes both descriptors non-blocking and close-on-exec. */
apr_status_t runner_wire_open(runner_wire_t *wire, int in_fd, int out_fd,
                              apr_pool_t *pool);

/*
 * Reads until a line has ended or the pipe is empty. APR_EOF at its end,
 * APR_ENOSPC when a line is longer than allowed.
 */
apr_status_t runner_wire_read(runner_wire_t *wire);

/*
 * The next whole line, NUL-terminated without its newline, valid until the
 * next read; NULL when there is none.
 */
char *runner_wire_line(runner_wire_t *wire, size_t *length);

/* Writes what the pipe takes. An error means that the supervisor is gone. */
apr_status_t runner_wire_flush(runner_wire_t *wire);

size_t runner_wire_pending(const runner_wire_t *wire);
bool runner_wire_is_full(const runner_wire_t *wire);

/*
 * Begins a line with a printf-style text, adds to it, ends it or takes it back.
 * Texts given here must need no escaping. add_json returns how many bytes it
 * added. End: APR_ENOSPC and no line at all when it grew longer than allowed.
 */
void runner_wire_begin(runner_wire_t *wire, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void runner_wire_add(runner_wire_t *wire, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
size_t runner_wire_add_json(runner_wire_t *wire, json_object *value);
apr_status_t runner_wire_end(runner_wire_t *wire);
void runner_wire_drop(runner_wire_t *wire);

/* Length of the line that was just ended, without its newline; and taking it
 * off the wire to the end of a buffer, newline included. Before any flush. */
size_t runner_wire_last(const runner_wire_t *wire);
void runner_wire_move(runner_wire_t *wire, runner_buffer_t *to);

/* Adds whole lines, newlines included (copied). */
void runner_wire_put(runner_wire_t *wire, const char *lines, size_t length);

#endif

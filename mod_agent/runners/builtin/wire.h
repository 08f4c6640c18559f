/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines over the two pipes to the supervisor, never blocking. Unsent output is
 * bounded: while runner_wire_is_full() the caller produces no more output and
 * reads no more input. runners/PROTOCOL.md specifies the lines.
 */
#ifndef AGENT_RUNNER_WIRE_H
#define AGENT_RUNNER_WIRE_H

#include <stdbool.h>

#include <apr_errno.h>
#include <json-c/json.h>

#include "core/buffer.h"

/* The longest line in either direction, without its newline. */
#define RUNNER_LINE_MAX ((size_t)8 * 1024 * 1024)
/* Unsent bytes above which the wire is full. */
#define RUNNER_WIRE_MAX ((size_t)256 * 1024)

typedef struct runner_wire_t {
    int in_fd;
    int out_fd;
    agent_buffer_t in;
    /* Bytes of in already returned as lines; bytes searched for a newline. */
    size_t in_taken;
    size_t in_searched;
    agent_buffer_t out;
    /* Where the unfinished line begins in out. */
    size_t line_start;
    /* Bytes in the backlogs of all runs (run/output.h). */
    size_t backlog;
} runner_wire_t;

/* Makes both descriptors non-blocking and close-on-exec. */
apr_status_t runner_wire_open(runner_wire_t *wire, int in_fd, int out_fd,
                              apr_pool_t *pool);

/*
 * Reads until a line is complete or the pipe is empty. Returns APR_EOF at the
 * end of the pipe, APR_ENOSPC when a line is longer than RUNNER_LINE_MAX.
 */
apr_status_t runner_wire_read(runner_wire_t *wire);

/*
 * Returns the next complete line, NUL-terminated without its newline, valid
 * until the next read; NULL when there is none.
 */
char *runner_wire_line(runner_wire_t *wire, size_t *length);

/* Whether the input may hold another complete line. */
bool runner_wire_has_lines(const runner_wire_t *wire);

/* Writes as much as the pipe accepts. An error means that the supervisor has
 * closed its end. */
apr_status_t runner_wire_flush(runner_wire_t *wire);

/* Bytes that are not written yet. */
size_t runner_wire_unsent(const runner_wire_t *wire);
bool runner_wire_is_full(const runner_wire_t *wire);

/*
 * A line is begun with a printf-style text, extended, and ended or dropped.
 * The texts are not escaped and have at most 511 bytes each. add_json returns
 * the number of bytes it appended. end returns APR_ENOSPC and drops the line
 * when it is longer than RUNNER_LINE_MAX.
 */
void runner_wire_begin(runner_wire_t *wire, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void runner_wire_add(runner_wire_t *wire, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
size_t runner_wire_add_json(runner_wire_t *wire, json_object *value);
apr_status_t runner_wire_end(runner_wire_t *wire);
void runner_wire_drop(runner_wire_t *wire);

/* Both act on the line that was ended last, before any flush: its length
 * without the newline; moving it, newline included, to the end of a buffer. */
size_t runner_wire_last(const runner_wire_t *wire);
void runner_wire_move(runner_wire_t *wire, agent_buffer_t *to);

/* Appends a copy of complete lines, newlines included. */
void runner_wire_put(runner_wire_t *wire, const char *lines, size_t length);

#endif

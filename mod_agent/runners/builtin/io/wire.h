/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines over the two non-blocking pipes to the supervisor. Unsent output is
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
    /* Bytes of in that were returned as lines. */
    size_t in_taken;
    /* Bytes of in that were searched for a newline. */
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
char *runner_wire_next_line(runner_wire_t *wire, size_t *length);

/* Whether the input may hold another complete line. */
bool runner_wire_has_lines(const runner_wire_t *wire);

/* Writes as much as the pipe accepts. An error means that the supervisor has
 * closed its end. */
apr_status_t runner_wire_flush(runner_wire_t *wire);

/* Bytes that are not written yet. */
size_t runner_wire_unsent(const runner_wire_t *wire);
/* Whether more than RUNNER_WIRE_MAX bytes are not written yet. */
bool runner_wire_is_full(const runner_wire_t *wire);

/* Begin a line, and add to it, with a printf-style text of at most 511 bytes,
 * which is not escaped. */
void runner_wire_begin(runner_wire_t *wire, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void runner_wire_add(runner_wire_t *wire, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a value to the line; returns the number of bytes. */
size_t runner_wire_add_json(runner_wire_t *wire, json_object *value);
/* Ends the line; APR_ENOSPC: it was longer than RUNNER_LINE_MAX and dropped. */
apr_status_t runner_wire_end(runner_wire_t *wire);
/* Drops the line that was begun last, ended or not. */
void runner_wire_drop(runner_wire_t *wire);

/* The length, without the newline, of the line that was ended last. Not valid
 * after a flush. */
size_t runner_wire_last_length(const runner_wire_t *wire);
/* Moves that line, with its newline, to the end of a buffer. */
void runner_wire_move_last(runner_wire_t *wire, agent_buffer_t *to);

/* Appends a copy of complete lines with their newlines. */
void runner_wire_append(runner_wire_t *wire, const char *lines, size_t length);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines over two non-blocking pipes; see wire.h. */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#define READ_SIZE ((size_t)64 * 1024)
/* The longest head of a line: fixed words, ids of 36 characters, numbers. */
#define HEAD_SIZE 512

static apr_status_t prepare_descriptor(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0
        || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        return errno;
    }
    return APR_SUCCESS;
}

apr_status_t runner_wire_open(runner_wire_t *wire, int in_fd, int out_fd,
                              apr_pool_t *pool)
{
    apr_status_t rv;

    memset(wire, 0, sizeof(*wire));
    wire->in_fd = in_fd;
    wire->out_fd = out_fd;
    runner_buffer_init(&wire->in, pool);
    runner_buffer_init(&wire->out, pool);
    rv = prepare_descriptor(in_fd);
    return rv != APR_SUCCESS ? rv : prepare_descriptor(out_fd);
}

static void drop_taken(runner_wire_t *wire)
{
    runner_buffer_consume(&wire->in, wire->in_taken);
    wire->in_searched -= wire->in_taken;
    wire->in_taken = 0;
}

/* One read. *is_enough: a line has ended, or the pipe is empty or broken. */
static apr_status_t read_piece(runner_wire_t *wire, bool *is_enough)
{
    ssize_t got;

    *is_enough = true;
    runner_buffer_reserve(&wire->in, READ_SIZE);
    got = read(wire->in_fd, wire->in.bytes + wire->in.length, READ_SIZE);
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR ? APR_SUCCESS : errno;
    }
    if (got == 0) {
        return APR_EOF;
    }
    *is_enough = memchr(wire->in.bytes + wire->in.length, '\n', (size_t)got)
        != NULL;
    wire->in.length += (size_t)got;
    wire->in.bytes[wire->in.length] = '\0';
    return APR_SUCCESS;
}

apr_status_t runner_wire_read(runner_wire_t *wire)
{
    apr_status_t rv = APR_SUCCESS;
    bool is_enough = false;

    drop_taken(wire);
    if (wire->in.length > RUNNER_LINE_MAX) {
        return APR_ENOSPC;
    }
    while (rv == APR_SUCCESS && !is_enough
           && wire->in.length <= RUNNER_LINE_MAX) {
        rv = read_piece(wire, &is_enough);
    }
    return rv;
}

char *runner_wire_line(runner_wire_t *wire, size_t *length)
{
    char *line;
    char *end;

    if (wire->in_searched == wire->in.length) {
        return NULL;
    }
    line = wire->in.bytes + wire->in_taken;
    end = memchr(wire->in.bytes + wire->in_searched, '\n',
                 wire->in.length - wire->in_searched);
    if (end == NULL) {
        wire->in_searched = wire->in.length;
        return NULL;
    }
    *end = '\0';
    *length = (size_t)(end - line);
    wire->in_taken += *length + 1;
    wire->in_searched = wire->in_taken;
    return line;
}

apr_status_t runner_wire_flush(runner_wire_t *wire)
{
    while (runner_wire_pending(wire) > 0) {
        ssize_t sent = write(wire->out_fd, wire->out.bytes + wire->out_sent,
                             runner_wire_pending(wire));

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            return errno == EAGAIN ? APR_SUCCESS : errno;
        }
        wire->out_sent += (size_t)sent;
        /* Moving the rest down is put off until it is the smaller part. */
        if (wire->out_sent > wire->out.length / 2) {
            runner_buffer_consume(&wire->out, wire->out_sent);
            wire->out_sent = 0;
        }
    }
    return APR_SUCCESS;
}

size_t runner_wire_pending(const runner_wire_t *wire)
{
    return wire->out.length - wire->out_sent;
}

bool runner_wire_is_full(const runner_wire_t *wire)
{
    return runner_wire_pending(wire) > RUNNER_OUTPUT_MAX;
}

static void add_formatted(runner_wire_t *wire, const char *format, va_list args)
{
    int length;

    runner_buffer_reserve(&wire->out, HEAD_SIZE);
    length = apr_vsnprintf(wire->out.bytes + wire->out.length, HEAD_SIZE,
                           format, args);
    wire->out.length += (size_t)length;
}

void runner_wire_begin(runner_wire_t *wire, const char *format, ...)
{
    va_list args;

    wire->line_start = wire->out.length;
    va_start(args, format);
    add_formatted(wire, format, args);
    va_end(args);
}

void runner_wire_add(runner_wire_t *wire, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_formatted(wire, format, args);
    va_end(args);
}

size_t runner_wire_add_json(runner_wire_t *wire, json_object *value)
{
    size_t length;
    const char *text = json_object_to_json_string_length(
        value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE,
        &length);

    runner_buffer_append(&wire->out, text, length);
    return length;
}

void runner_wire_drop(runner_wire_t *wire)
{
    wire->out.length = wire->line_start;
}

apr_status_t runner_wire_end(runner_wire_t *wire)
{
    if (wire->out.length - wire->line_start > RUNNER_LINE_MAX) {
        runner_wire_drop(wire);
        return APR_ENOSPC;
    }
    runner_buffer_append(&wire->out, "\n", 1);
    return APR_SUCCESS;
}

size_t runner_wire_last(const runner_wire_t *wire)
{
    return wire->out.length - wire->line_start - 1;
}

void runner_wire_move(runner_wire_t *wire, runner_buffer_t *to)
{
    runner_buffer_append(to, wire->out.bytes + wire->line_start,
                         wire->out.length - wire->line_start);
    runner_wire_drop(wire);
}

void runner_wire_put(runner_wire_t *wire, const char *lines, size_t length)
{
    runner_buffer_append(&wire->out, lines, length);
}

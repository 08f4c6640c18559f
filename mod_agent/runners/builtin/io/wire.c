/* SPDX-License-Identifier: Apache-2.0 */
/* Lines over two non-blocking pipes. */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#define READ_SIZE ((size_t)64 * 1024)
/* The longest formatted text: fixed words, ids of 36 characters, numbers. */
#define TEXT_SIZE 512

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
    agent_buffer_init(&wire->in, pool);
    agent_buffer_init(&wire->out, pool);
    rv = prepare_descriptor(in_fd);
    return rv != APR_SUCCESS ? rv : prepare_descriptor(out_fd);
}

static void drop_taken(runner_wire_t *wire)
{
    agent_buffer_consume(&wire->in, wire->in_taken);
    wire->in_searched -= wire->in_taken;
    wire->in_taken = 0;
}

/* One read. *is_enough: a line is complete, or the pipe is empty or broken. */
static apr_status_t read_piece(runner_wire_t *wire, bool *is_enough)
{
    char *room = agent_buffer_reserve(&wire->in, READ_SIZE);
    ssize_t got = read(wire->in_fd, room, READ_SIZE);

    *is_enough = true;
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR ? APR_SUCCESS : errno;
    }
    if (got == 0) {
        return APR_EOF;
    }
    *is_enough = memchr(room, '\n', (size_t)got) != NULL;
    agent_buffer_commit(&wire->in, (apr_size_t)got);
    return APR_SUCCESS;
}

apr_status_t runner_wire_read(runner_wire_t *wire)
{
    apr_status_t rv = APR_SUCCESS;
    bool is_enough = false;

    drop_taken(wire);
    if (agent_buffer_length(&wire->in) > RUNNER_LINE_MAX) {
        return APR_ENOSPC;
    }
    while (rv == APR_SUCCESS && !is_enough
           && agent_buffer_length(&wire->in) <= RUNNER_LINE_MAX) {
        rv = read_piece(wire, &is_enough);
    }
    return rv;
}

bool runner_wire_has_lines(const runner_wire_t *wire)
{
    return wire->in_searched < agent_buffer_length(&wire->in);
}

char *runner_wire_next_line(runner_wire_t *wire, size_t *length)
{
    char *text = agent_buffer_text(&wire->in);
    char *line = text + wire->in_taken;
    char *end;

    if (!runner_wire_has_lines(wire)) {
        return NULL;
    }
    end = memchr(text + wire->in_searched, '\n',
                 agent_buffer_length(&wire->in) - wire->in_searched);
    if (end == NULL) {
        wire->in_searched = agent_buffer_length(&wire->in);
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
    while (runner_wire_unsent(wire) > 0) {
        ssize_t sent = write(wire->out_fd, agent_buffer_text(&wire->out),
                             runner_wire_unsent(wire));

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            return errno == EAGAIN ? APR_SUCCESS : errno;
        }
        agent_buffer_consume(&wire->out, (apr_size_t)sent);
    }
    return APR_SUCCESS;
}

size_t runner_wire_unsent(const runner_wire_t *wire)
{
    return agent_buffer_length(&wire->out);
}

bool runner_wire_is_full(const runner_wire_t *wire)
{
    return runner_wire_unsent(wire) > RUNNER_WIRE_MAX;
}

static void add_formatted(runner_wire_t *wire, const char *format, va_list args)
{
    int length = apr_vsnprintf(agent_buffer_reserve(&wire->out, TEXT_SIZE),
                               TEXT_SIZE, format, args);

    agent_buffer_commit(&wire->out, (apr_size_t)length);
}

void runner_wire_begin(runner_wire_t *wire, const char *format, ...)
{
    va_list args;

    wire->line_start = agent_buffer_length(&wire->out);
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

    agent_buffer_append(&wire->out, text, length);
    return length;
}

void runner_wire_drop(runner_wire_t *wire)
{
    agent_buffer_truncate(&wire->out, wire->line_start);
}

apr_status_t runner_wire_end(runner_wire_t *wire)
{
    if (agent_buffer_length(&wire->out) - wire->line_start > RUNNER_LINE_MAX) {
        runner_wire_drop(wire);
        return APR_ENOSPC;
    }
    agent_buffer_append(&wire->out, "\n", 1);
    return APR_SUCCESS;
}

size_t runner_wire_last_length(const runner_wire_t *wire)
{
    return agent_buffer_length(&wire->out) - wire->line_start - 1;
}

void runner_wire_move_last(runner_wire_t *wire, agent_buffer_t *to)
{
    agent_buffer_append(to, agent_buffer_text(&wire->out) + wire->line_start,
                        agent_buffer_length(&wire->out) - wire->line_start);
    runner_wire_drop(wire);
}

void runner_wire_append(runner_wire_t *wire, const char *lines, size_t length)
{
    agent_buffer_append(&wire->out, lines, length);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The pipes of runners; see io.h. */
#include "io.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../../base/poll.h"
#include "../protocol/protocol.h"
#include "../run/runs.h"
#include "line.h"
#include "log.h"

/* Bytes of one read, few enough that a runner does not delay the others. */
#define READ_SIZE ((apr_size_t)256 * 1024)
#define LOG_SIZE  4096
/* Reads of each pipe of a runner that has ended: more than a pipe holds, but
 * not without end, since a child of the runner may still write. */
#define MAX_LAST_READS 64

/* Output that waits, or credit for it. */
static int count_kb(const agent_runner_io_t *io, agent_backlog_kind_t kind)
{
    return (int)(agent_backlog_sum(&io->runs->batches.backlogs, kind) / 1024);
}

/* Runners that were held before are resumed first. */
static void hold(agent_runner_io_t *io, agent_runner_t *runner)
{
    runner->is_held = true;
    AGENT_RING_LEAVE(runner, pending_link);
    agent_runner_touch(runner);
    agent_report_repeat(
        io->context, AGENT_LOG_WARNING, "AGT0354", 0,
        "%d KB of output wait for the database, credit for %d KB is granted: "
        "runner %d sent a line for which it has no credit, or its deployment "
        "no room left, and is not read until there is room",
        count_kb(io, AGENT_BACKLOG_SHARED)
            + count_kb(io, AGENT_BACKLOG_DEDICATED),
        count_kb(io, AGENT_BACKLOG_CREDIT), (int)runner->pid);
}

/* Handles complete lines while there is room for them; with is_last, all of
 * them. */
static void split_lines(agent_runner_io_t *io, agent_runner_t *runner,
                        bool is_last)
{
    agent_buffer_t *output = &runner->output;

    while (runner->state < AGENT_RUNNER_KILLED) {
        char *text = agent_buffer_text(output);
        apr_size_t length = agent_buffer_length(output);
        char *newline = length > runner->scanned
            ? memchr(text + runner->scanned, '\n', length - runner->scanned)
            : NULL;
        apr_size_t line = newline != NULL ? (apr_size_t)(newline - text)
                                          : length;

        if (line > AGENT_PROTOCOL_MAX_LINE) {
            agent_runner_breach(io->runners, runner,
                                "a line of more than 8 MiB");
            return;
        }
        if (newline == NULL) {
            runner->scanned = length;
            return;
        }
        if (!agent_runner_line_take(io, runner, text, line, is_last)) {
            runner->scanned = line;
            hold(io, runner);
            return;
        }
        agent_buffer_consume(output, line + 1);
        runner->scanned = 0;
    }
}

/* Reads once; false when there is nothing more, or nothing yet. */
static bool read_output(agent_runner_io_t *io, agent_runner_t *runner,
                        bool is_last)
{
    ssize_t got;

    if (runner->out.fd < 0 || runner->state >= AGENT_RUNNER_KILLED) {
        return false;
    }
    got = read(runner->out.fd, agent_buffer_reserve(&runner->output, READ_SIZE),
               READ_SIZE);
    if (got > 0) {
        agent_buffer_commit(&runner->output, (apr_size_t)got);
        split_lines(io, runner, is_last);
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return errno == EINTR;
    }
    agent_poll_close_watch(&runner->out);
    return false;
}

/* A runner that has closed its output is killed: if it is exiting already, that
 * changes nothing. */
static void on_output(void *part, void *item)
{
    agent_runner_io_t *io = part;
    agent_runner_t *runner = item;

    read_output(io, runner, false);
    if (runner->out.fd < 0) {
        bool expected = runner->state == AGENT_RUNNER_DRAINING
            && runner->group.active == 0;

        agent_runner_kill(io->runners, runner,
                          expected ? AGENT_LOSS_UNCOUNTED : AGENT_LOSS_COUNTED,
                          "the runner process ended unexpectedly");
    }
}

static bool has_input(const agent_runner_t *runner)
{
    return agent_buffer_length(&runner->input) > 0;
}

/* Writes as much as the pipe takes. */
static void write_input(agent_runner_t *runner)
{
    ssize_t put = write(runner->in.fd, agent_buffer_text(&runner->input),
                        agent_buffer_length(&runner->input));

    if (put > 0) {
        agent_buffer_consume(&runner->input, (apr_size_t)put);
        runner->written += (apr_uint64_t)put;
    }
    else if (put < 0 && errno != EAGAIN && errno != EINTR) {
        /* It has closed its input: it is about to exit, or will not answer the
         * next ping. */
        agent_poll_close_watch(&runner->in);
    }
}

static void on_input(void *part, void *item)
{
    write_input(item);
}

/* Reads once; false when there is nothing more, or nothing yet. */
static bool read_log(agent_runner_io_t *io, agent_runner_t *runner)
{
    char bytes[LOG_SIZE];
    ssize_t got;

    if (runner->log_out.fd < 0) {
        return false;
    }
    got = read(runner->log_out.fd, bytes, sizeof(bytes));
    if (got > 0) {
        agent_runner_log_take(io->context, runner, bytes, (apr_size_t)got);
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    agent_poll_close_watch(&runner->log_out);
    return false;
}

static void on_log(void *part, void *item)
{
    read_log(part, item);
}

void agent_runner_io_read_rest(agent_runner_io_t *io, agent_runner_t *runner)
{
    runner->is_held = false;
    split_lines(io, runner, true);
    for (int i = 0; i < MAX_LAST_READS && read_output(io, runner, true); i++) {
    }
    for (int i = 0; i < MAX_LAST_READS && read_log(io, runner); i++) {
    }
    agent_runner_log_end(io->context, runner);
}

void agent_runner_io_resume(agent_runner_io_t *io)
{
    agent_runner_t *runner;
    agent_runner_t *next;

    AGENT_RING_EACH_SAFE(runner, next, &io->runners->pending, agent_runner_t,
                         pending_link)
    {
        /* The line is not parsed again before there is room for it. */
        if (runner->is_held && !agent_batch_is_full(&io->runs->batches)
            && agent_runner_line_has_room(io->runs, runner, &runner->held_key,
                                          runner->scanned)) {
            runner->is_held = false;
            split_lines(io, runner, false);
        }
    }
}

/* ---- waiting ---- */

static void init_watch(agent_poll_watch_t *watch, agent_poll_handler_t handler,
                       agent_runner_io_t *io, agent_runner_t *runner)
{
    watch->handler = handler;
    watch->part = io;
    watch->item = runner;
}

static void poll_runner(agent_runner_io_t *io, agent_runner_t *runner)
{
    agent_poll_t *set = io->runners->poll;
    bool is_alive = runner->state < AGENT_RUNNER_KILLED;
    bool is_read = is_alive && !io->runners->is_full && !runner->is_held;

    /* The pipe may have room, unless that is waited for already. */
    if (is_alive && runner->in.fd >= 0 && has_input(runner)
        && runner->in.events == 0) {
        write_input(runner);
    }
    init_watch(&runner->in, on_input, io, runner);
    init_watch(&runner->out, on_output, io, runner);
    init_watch(&runner->log_out, on_log, io, runner);
    agent_poll_set(set, &runner->in,
                   is_alive && has_input(runner) ? EPOLLOUT : 0);
    agent_poll_set(set, &runner->out, is_read ? EPOLLIN : 0);
    agent_poll_set(set, &runner->log_out, EPOLLIN);
    if (!runner->is_held && !has_input(runner)
        && runner->state < AGENT_RUNNER_DEAD) {
        AGENT_RING_LEAVE(runner, pending_link);
    }
}

/* All runners are read from now on, or none. */
static void set_full(agent_runner_io_t *io, bool is_full)
{
    agent_runner_t *runner;

    if (is_full) {
        agent_report_repeat(io->context, AGENT_LOG_WARNING, "AGT0345", 0,
                            "%d MB of output wait for the database: runners "
                            "are not read until it takes them",
                            (count_kb(io, AGENT_BACKLOG_SHARED)
                             + count_kb(io, AGENT_BACKLOG_DEDICATED))
                                / 1024);
    }
    io->runners->is_full = is_full;
    AGENT_RING_EACH(runner, &io->runners->all, agent_runner_t, link)
    {
        agent_runner_touch(runner);
    }
}

bool agent_runner_io_poll(agent_runner_io_t *io)
{
    bool is_full = agent_batch_is_full(&io->runs->batches);
    bool has_written = false;
    agent_runner_t *runner;
    agent_runner_t *next;

    if (is_full != io->runners->is_full) {
        set_full(io, is_full);
    }
    AGENT_RING_EACH_SAFE(runner, next, &io->runners->pending, agent_runner_t,
                         pending_link)
    {
        apr_uint64_t written = runner->written;

        poll_runner(io, runner);
        has_written = has_written || runner->written > written;
    }
    return has_written;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The three pipes of a runner, never blocking; see runner.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "../instance.h"

/* Read at once, so that one runner does not keep others waiting. */
#define READ_SIZE ((apr_size_t)256 * 1024)
#define LOG_SIZE  4096
/* Reads of each pipe of a runner that has ended. */
#define MAX_LAST_READS 64

void agent_runner_close(agent_runner_t *runner)
{
    int *fds[] = {&runner->in_fd, &runner->out_fd, &runner->log_fd};

    for (int i = 0; i < 3; i++) {
        if (*fds[i] >= 0) {
            close(*fds[i]);
            *fds[i] = -1;
        }
    }
}

static void hold(agent_supervisor_t *sv, agent_runner_t *runner)
{
    runner->is_held = true;
    agent_report_repeat(
        sv, AGENT_LOG_WARNING, "AGT0354", 0,
        "%d KB of output wait for the database: runner %d sent more of a run "
        "without asking (want) and is not read until some is saved",
        (int)((sv->batches.shared_bytes + sv->batches.lane_bytes) / 1024),
        (int)runner->pid);
}

/* Passes on each complete line while there is room for it; with is_last, all of
 * them. */
static void split_lines(agent_supervisor_t *sv, agent_runner_t *runner,
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
            agent_runner_breach(sv, runner, "a line of more than 8 MiB");
            return;
        }
        if (newline == NULL) {
            runner->scanned = length;
            return;
        }
        if (!agent_runner_take_line(sv, runner, text, line, is_last)) {
            runner->scanned = line;
            hold(sv, runner);
            return;
        }
        agent_buffer_consume(output, line + 1);
        runner->scanned = 0;
    }
}

/* One read; false when there is no more for now, or for ever. */
static bool read_output(agent_supervisor_t *sv, agent_runner_t *runner,
                        bool is_last)
{
    ssize_t got;

    if (runner->out_fd < 0 || runner->state >= AGENT_RUNNER_KILLED) {
        return false;
    }
    got = read(runner->out_fd, agent_buffer_reserve(&runner->output, READ_SIZE),
               READ_SIZE);
    if (got > 0) {
        agent_buffer_commit(&runner->output, (apr_size_t)got);
        split_lines(sv, runner, is_last);
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return errno == EINTR;
    }
    close(runner->out_fd);
    runner->out_fd = -1;
    return false;
}

/*
 * The end of its output is the end of the runner, whether it exits or not: a
 * kill changes nothing for a process that is exiting.
 */
static void on_output(agent_supervisor_t *sv, void *baton)
{
    agent_runner_t *runner = baton;

    read_output(sv, runner, false);
    if (runner->out_fd < 0) {
        bool expected = runner->state == AGENT_RUNNER_LEAVING
            && runner->active == 0;

        agent_runner_kill(sv, runner,
                          expected ? AGENT_LOSS_UNCOUNTED : AGENT_LOSS_COUNTED,
                          "the runner process ended unexpectedly");
    }
}

static void on_input(agent_supervisor_t *sv, void *baton)
{
    agent_runner_t *runner = baton;
    ssize_t put;

    if (runner->in_fd < 0) {
        return;
    }
    put = write(runner->in_fd, agent_buffer_text(&runner->input),
                agent_buffer_length(&runner->input));
    if (put > 0) {
        agent_buffer_consume(&runner->input, (apr_size_t)put);
    }
    else if (put < 0 && errno != EAGAIN && errno != EINTR) {
        /* It does not listen any more: it ends, or a ping will tell. */
        close(runner->in_fd);
        runner->in_fd = -1;
    }
}

/* One read; false when there is no more. */
static bool read_log(agent_supervisor_t *sv, agent_runner_t *runner)
{
    char bytes[LOG_SIZE];
    ssize_t got;

    if (runner->log_fd < 0) {
        return false;
    }
    got = read(runner->log_fd, bytes, sizeof(bytes));
    if (got > 0) {
        agent_runner_take_log(sv, runner, bytes, (apr_size_t)got);
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    close(runner->log_fd);
    runner->log_fd = -1;
    return false;
}

static void on_log(agent_supervisor_t *sv, void *baton)
{
    read_log(sv, baton);
}

void agent_runner_read_rest(agent_supervisor_t *sv, agent_runner_t *runner)
{
    runner->is_held = false;
    split_lines(sv, runner, true);
    /* What is in the pipes now, not what a process that it left behind may
     * write for ever. */
    for (int i = 0; i < MAX_LAST_READS && read_output(sv, runner, true); i++) {
    }
    for (int i = 0; i < MAX_LAST_READS && read_log(sv, runner); i++) {
    }
    agent_runner_end_log(sv, runner);
}

static void poll_runner(agent_supervisor_t *sv, agent_runner_t *runner)
{
    if (runner->log_fd >= 0) {
        agent_poll_add(sv, runner->log_fd, POLLIN, on_log, runner);
    }
    if (runner->state >= AGENT_RUNNER_KILLED) {
        return;
    }
    if (runner->out_fd >= 0 && !sv->runners.is_full && !runner->is_held) {
        agent_poll_add(sv, runner->out_fd, POLLIN, on_output, runner);
    }
    if (runner->in_fd >= 0 && agent_buffer_length(&runner->input) > 0) {
        agent_poll_add(sv, runner->in_fd, POLLOUT, on_input, runner);
    }
}

bool agent_runner_may_answer(const agent_supervisor_t *sv,
                             const agent_runner_t *runner)
{
    return !sv->runners.is_full && !runner->is_held && !sv->worker.is_stopped;
}

void agent_runner_resume(agent_supervisor_t *sv)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        /* The line is not read again before there is room for it. */
        if (runner->is_held && !agent_batch_is_full(sv)
            && agent_runner_has_room(sv, runner, &runner->held_key,
                                     runner->scanned)) {
            runner->is_held = false;
            split_lines(sv, runner, false);
        }
    }
}

void agent_runner_poll(agent_supervisor_t *sv)
{
    bool is_full = agent_batch_is_full(sv);
    agent_runner_t *runner;

    if (is_full && !sv->runners.is_full) {
        agent_report_repeat(
            sv, AGENT_LOG_WARNING, "AGT0345", 0,
            "%d MB of output wait for the database: runners "
            "are not read until it takes them",
            (int)((sv->batches.shared_bytes + sv->batches.lane_bytes)
                  / (1024 * 1024)));
    }
    sv->runners.is_full = is_full;
    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        poll_runner(sv, runner);
    }
}

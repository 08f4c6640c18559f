/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow control of a run's output. A line is put on the wire while the run has
 * credit: the line is short and the run has sent less than RUNNER_CREDIT_MAX
 * bytes since its last `go`. Otherwise the line and all later ones go to the
 * run's backlog, the run requests credit (`want`) and pauses until the
 * supervisor grants it (`go`); other runs continue. runners/PROTOCOL.md
 * specifies both messages. A run that is cancelled sends no further events that
 * have no credit yet.
 */
#ifndef AGENT_RUNNER_OUTPUT_H
#define AGENT_RUNNER_OUTPUT_H

#include "runners/builtin/io/wire.h"

/* A longer line always needs credit. */
#define RUNNER_LINE_LONG ((size_t)64 * 1024)
/* Bytes that a run may send between two `go`. */
#define RUNNER_CREDIT_MAX ((size_t)256 * 1024)
/* When the backlogs of all runs have this size, only runs with at most
 * RUNNER_LINE_LONG bytes of text continue. */
#define RUNNER_BACKLOG_MAX ((size_t)16 * 1024 * 1024)

typedef struct runner_output_t {
    runner_wire_t *wire;
    /* Borrowed from the run. */
    const char *run_id;
    int64_t epoch;
    /* Bytes put on the wire since `start` or the last `go`. */
    size_t sent;
    /* Complete lines that wait for credit, and a runner_line_t of each. */
    agent_buffer_t backlog;
    agent_buffer_t lines;
    /* Bytes of backlog that the last `want` requested; 0 when no `go` is due.
     */
    size_t requested;
    bool is_cancelled;
    /* An optional line was dropped, as all later ones will be. */
    bool has_dropped;
} runner_output_t;

typedef struct runner_line_t {
    /* Bytes, with the newline. */
    size_t length;
    /* Dropped when the run is cancelled. */
    bool is_optional;
} runner_line_t;

/* Makes the output of a run; run_id is borrowed, the backlog is in pool. */
void runner_output_init(runner_output_t *output, runner_wire_t *wire,
                        const char *run_id, int64_t epoch, apr_pool_t *pool);

/* Moves the line that was ended last on the wire to the backlog if it has no
 * credit, or lines before it have none. After runner_output_cancel() an
 * optional line is dropped instead. */
void runner_output_add(runner_output_t *output, bool is_optional);

/* The run is cancelled: drops the optional lines of the backlog that were not
 * requested. */
void runner_output_cancel(runner_output_t *output);

bool runner_output_has_backlog(const runner_output_t *output);

/* Whether the run, which has text_size bytes of text, must wait: it has a
 * backlog, or it is not small and the backlogs of all runs have
 * RUNNER_BACKLOG_MAX bytes. */
bool runner_output_is_blocked(const runner_output_t *output, size_t text_size);

/* Sends `want` for the first lines of the backlog, unless it is empty or a
 * `go` is due. */
void runner_output_request(runner_output_t *output);

/* Takes `go`: puts the requested lines on the wire, and the short lines after
 * them that need no further credit. Nothing, if no `go` is due. */
void runner_output_grant(runner_output_t *output);

#endif

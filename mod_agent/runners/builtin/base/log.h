/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on stderr, which the supervisor writes to the server's error log. */
#ifndef AGENT_RUNNER_LOG_H
#define AGENT_RUNNER_LOG_H

/*
 * Writes one line, prefixed with `run <run_id>: ` when run_id is not NULL.
 * Control characters become spaces; a long line is truncated. Never blocks: a
 * line that stderr does not accept at once is dropped.
 */
void runner_log_write(const char *run_id, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

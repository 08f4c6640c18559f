/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on stderr, which the supervisor passes to the server's error log. */
#ifndef AGENT_RUNNER_LOG_H
#define AGENT_RUNNER_LOG_H

/*
 * Writes one line, with the run's id in front when run_id is not NULL. Control
 * characters become spaces; a line that is too long is cut. Never blocks: when
 * nobody reads stderr the line is dropped.
 */
void runner_log_write(const char *run_id, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

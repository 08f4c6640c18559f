/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes standard output and error of runners to the log, line by line, at most
 * 100 lines of a runner in 10 s: a runner must not fill the disk.
 */
#ifndef AGENT_SUPERVISOR_RUNNER_LOG_H
#define AGENT_SUPERVISOR_RUNNER_LOG_H

#include "../pool/runner.h"

/* Adds output of the runner (copied), in pieces of any length. */
void agent_runner_log_take(const agent_context_t *context,
                           agent_runner_t *runner, const char *bytes,
                           apr_size_t length);

/* Reports omitted lines. Called each second; it acts each 10 s. */
void agent_runner_log_tick(const agent_context_t *context,
                           agent_runner_t *runner);

/* Writes an incomplete last line, and reports omitted lines. */
void agent_runner_log_end(const agent_context_t *context,
                          agent_runner_t *runner);

#endif

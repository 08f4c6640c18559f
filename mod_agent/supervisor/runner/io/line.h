/* SPDX-License-Identifier: Apache-2.0 */
/* Handles the protocol lines of runners. */
#ifndef AGENT_SUPERVISOR_RUNNER_LINE_H
#define AGENT_SUPERVISOR_RUNNER_LINE_H

#include "io.h"

/* Whether a line of `length` bytes, without its newline, can be handled now.
 * True also for a run that the runner does not execute. */
bool agent_runner_line_has_room(const agent_runs_t *runs,
                                const agent_runner_t *runner,
                                const agent_lease_key_t *key,
                                apr_size_t length);

/* Handles a line, given without its newline; kills the runner if the line
 * breaks the protocol. Returns false when there is no room for it:
 * runner->held_key is set to its run, and the line is to be passed again later.
 * With is_last it is always handled. */
bool agent_runner_line_take(agent_runner_io_t *io, agent_runner_t *runner,
                            const char *text, apr_size_t length, bool is_last);

#endif

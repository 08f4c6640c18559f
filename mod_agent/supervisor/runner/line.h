/* SPDX-License-Identifier: Apache-2.0 */
/* Handles the protocol lines of runners. */
#ifndef AGENT_SUPERVISOR_RUNNER_LINE_H
#define AGENT_SUPERVISOR_RUNNER_LINE_H

#include "io.h"

/* Whether there is room for a line of that length of that run. */
bool agent_runner_has_room(const agent_runs_t *runs,
                           const agent_runner_t *runner,
                           const agent_lease_key_t *key, apr_size_t length);

/* Handles a line without its newline. False: there is no room for it;
 * runner->held_key is set to its run; call again later with the same line. With
 * is_last it is always handled. */
bool agent_runner_take_line(agent_runner_io_t *io, agent_runner_t *runner,
                            const char *text, apr_size_t length, bool is_last);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the supervisor. */
#ifndef AGENT_RUNNER_COMMAND_H
#define AGENT_RUNNER_COMMAND_H

#include "runner_state.h"

/* Executes a message, which belongs to pool. Takes pool: it becomes the pool of
 * the run that the message starts, or is destroyed. */
void runner_command_execute(runner_t *runner, json_object *message,
                            apr_pool_t *pool);

/* Logs that the supervisor broke the protocol, and ends the process. */
void runner_command_refuse(runner_t *runner, const char *reason);

#endif

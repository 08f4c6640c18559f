/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the three files of the spawner: its messages, its main function,
 * and the exec of a runner. */
#ifndef AGENT_SUPERVISOR_SPAWNER_PRIVATE_H
#define AGENT_SUPERVISOR_SPAWNER_PRIVATE_H

#include "spawner.h"

/* The spawner's main function; fd is its end of the socket. */
void agent_spawner_serve(int fd, int runner_fd,
                         const agent_supervisor_config_t *config)
    __attribute__((noreturn));

/* Becomes the runner, in a new child of the spawner. */
void agent_spawner_exec(int runner_fd, const int fds[AGENT_SPAWNER_FDS],
                        const agent_supervisor_config_t *config, pid_t parent)
    __attribute__((noreturn));

/* A message on the socket, in both directions. */
typedef struct agent_spawner_message_t {
    apr_int32_t kind;
    apr_uint32_t id;
    apr_int32_t value;
} agent_spawner_message_t;

/* Requests; the other direction uses agent_spawner_update_t. */
#define AGENT_SPAWNER_DO_SPAWN 101
#define AGENT_SPAWNER_DO_KILL  102

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the three files of the spawner: its messages, its main function,
 * and the exec of a runner. */
#ifndef AGENT_SUPERVISOR_SPAWNER_PRIVATE_H
#define AGENT_SUPERVISOR_SPAWNER_PRIVATE_H

#include "spawner.h"

/* The spawner's main function; fd is its end of the socket, programs[i] the
 * open program of pool i, cgroup the directory of their cgroups or -1. */
void agent_spawner_serve(int fd, const int *programs, int cgroup, bool can_mark,
                         const agent_supervisor_config_t *config);

/* Becomes a runner of a pool, in a new child of the spawner; id: the runner's,
 * program: its open program, uid and gid: those of the supervisor. */
typedef struct agent_spawn_params_t {
    apr_uint32_t id;
    const agent_pool_config_t *pool;
    int program;
    uid_t uid;
    gid_t gid;
    pid_t parent;
} agent_spawn_params_t;
void agent_spawner_exec(const agent_spawn_params_t *params,
                        const int fds[AGENT_SPAWNER_FDS])
    __attribute__((noreturn));

/* A message on the socket, in both directions. value: the index of the pool, a
 * signal, or as agent_spawner_update_t says. */
typedef struct agent_spawner_message_t {
    apr_int32_t kind;
    apr_uint32_t id;
    apr_int32_t value;
} agent_spawner_message_t;

/* Requests; the other direction uses agent_spawner_update_t. */
#define AGENT_SPAWNER_DO_SPAWN 101
#define AGENT_SPAWNER_DO_KILL  102

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spawner: a small process that stays root while the supervisor does not,
 * to start runners under their own user and to kill them.
 *
 * Requests come over a SOCK_SEQPACKET pair and name pools and runners by
 * number. Programs, users and limits are those of the configuration, of which
 * it has a copy; programs are opened before the fork. It signals only its
 * children. So a compromised supervisor gains nothing by it. When the
 * supervisor ends, in whatever way, the spawner kills all runners and ends too.
 */
#ifndef AGENT_SUPERVISOR_SPAWNER_H
#define AGENT_SUPERVISOR_SPAWNER_H

#include "../base/supervisor_config.h"

/* The descriptors a runner gets: 1 and 2 share one pipe. */
typedef enum agent_spawner_fd_t {
    AGENT_SPAWNER_LOG,
    AGENT_SPAWNER_IN,
    AGENT_SPAWNER_OUT,
    AGENT_SPAWNER_FDS
} agent_spawner_fd_t;

typedef enum agent_spawner_update_t {
    AGENT_SPAWNER_NOTHING,
    /* value: the runner's pid. */
    AGENT_SPAWNER_STARTED,
    /* value: errno. */
    AGENT_SPAWNER_REFUSED,
    /* It has started, but outside of the cgroup of its pool. value: errno. */
    AGENT_SPAWNER_UNLIMITED,
    /* value: as from waitpid(). */
    AGENT_SPAWNER_EXITED,
    /* The spawner has ended, and with it all runners. */
    AGENT_SPAWNER_LOST
} agent_spawner_update_t;

typedef struct agent_spawner_t {
    /* Non-blocking; to be polled for reading. */
    int fd;
    pid_t pid;
    /* Processes of runners can be marked. Else those that a runner has left are
     * killed only while none lives. */
    bool can_mark;
} agent_spawner_t;

/* Opens the programs of all pools and the cgroup, and forks the spawner; called
 * before privileges are dropped. *path: what cannot be opened; NULL: the
 * failure is another one. */
apr_status_t agent_spawner_start(agent_spawner_t *spawner,
                                 const agent_supervisor_config_t *config,
                                 const char **path);

/* Requests a runner of a pool. id: the runner's; pool: its index in the
 * configuration. The spawner gets copies of fds. STARTED or REFUSED follows. */
apr_status_t agent_spawner_spawn(const agent_spawner_t *spawner,
                                 apr_uint32_t id, int pool,
                                 const int fds[AGENT_SPAWNER_FDS]);

/* Signals the runner and its process group, if it still runs. */
apr_status_t agent_spawner_kill(const agent_spawner_t *spawner, apr_uint32_t id,
                                int number);

/* Returns the next update; AGENT_SPAWNER_NOTHING when there is none yet. */
agent_spawner_update_t agent_spawner_receive(const agent_spawner_t *spawner,
                                             apr_uint32_t *id, int *value);

/*
 * Has the spawner kill all runners and end, and waits for its end for at most
 * timeout_ms.
 */
void agent_spawner_stop(agent_spawner_t *spawner, int timeout_ms);

#endif

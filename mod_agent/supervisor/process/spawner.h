/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spawner: a tiny process that stays root while the supervisor does not,
 * only to start runners under their own user and to kill them.
 *
 * It is asked over a SOCK_SEQPACKET pair, starts one program only (opened
 * before the fork) and signals only what it started, so a supervisor that was
 * taken over gains nothing by it. When the supervisor ends, however it ends,
 * the spawner kills all runners and ends too.
 */
#ifndef AGENT_SUPERVISOR_SPAWNER_H
#define AGENT_SUPERVISOR_SPAWNER_H

#include "../supervisor.h"

/* The descriptors a runner gets: 1 and 2 share one pipe. */
typedef enum agent_spawner_fd_t {
    AGENT_SPAWNER_LOG,
    AGENT_SPAWNER_IN,
    AGENT_SPAWNER_OUT,
    AGENT_SPAWNER_FDS
} agent_spawner_fd_t;

typedef enum agent_spawner_news_t {
    AGENT_SPAWNER_NOTHING,
    /* value: the runner's pid. */
    AGENT_SPAWNER_STARTED,
    /* value: errno. */
    AGENT_SPAWNER_REFUSED,
    /* value: as from waitpid(). */
    AGENT_SPAWNER_EXITED,
    /* The spawner itself is gone, and with it all runners. */
    AGENT_SPAWNER_LOST
} agent_spawner_news_t;

typedef struct agent_spawner_t {
    /* Non-blocking; to be polled for reading. */
    int fd;
    pid_t pid;
} agent_spawner_t;

/* Forks the spawner; called before privileges are dropped. */
apr_status_t agent_spawner_start(agent_spawner_t *spawner,
                                 const agent_supervisor_config_t *config);

/*
 * Asks for a runner. id names it from now on; fds are copied. An answer
 * STARTED or REFUSED follows.
 */
apr_status_t agent_spawner_spawn(const agent_spawner_t *spawner,
                                 apr_uint32_t id,
                                 const int fds[AGENT_SPAWNER_FDS]);

/* Signals the runner and the processes of its group, if it still runs. */
apr_status_t agent_spawner_kill(const agent_spawner_t *spawner, apr_uint32_t id,
                                int number);

/* The next piece of news; AGENT_SPAWNER_NOTHING when there is none yet. */
agent_spawner_news_t agent_spawner_receive(const agent_spawner_t *spawner,
                                           apr_uint32_t *id, int *value);

/*
 * Lets the spawner kill all runners and end, and waits for it, but no longer
 * than timeout_ms.
 */
void agent_spawner_stop(agent_spawner_t *spawner, int timeout_ms);

/* For spawner.c: the process's life; never returns. fd is its end. */
void agent_spawner_serve(int fd, int runner_fd,
                         const agent_supervisor_config_t *config)
    __attribute__((noreturn));

/* For spawner.c: becomes the runner in a new child; never returns. */
void agent_spawner_exec(int runner_fd, const int fds[AGENT_SPAWNER_FDS],
                        const agent_supervisor_config_t *config, pid_t parent)
    __attribute__((noreturn));

/* What goes over the socket, both ways. */
typedef struct agent_spawner_message_t {
    apr_int32_t kind;
    apr_uint32_t id;
    apr_int32_t value;
} agent_spawner_message_t;

/* Requests; answers use agent_spawner_news_t. */
#define AGENT_SPAWNER_DO_SPAWN 101
#define AGENT_SPAWNER_DO_KILL  102

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of the spawner; see spawner.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../../core/clock.h"
#include "cgroup.h"
#include "process.h"
#include "spawner_private.h"

/*
 * A program is executed by its descriptor, which is closed on exec. The
 * descriptor of a script stays open: its interpreter reads from it.
 */
static void keep_script_open(int fd)
{
    char start[2] = "";

    if (pread(fd, start, 2, 0) == 2 && memcmp(start, "#!", 2) == 0) {
        fcntl(fd, F_SETFD, 0);
    }
}

static bool is_first(const int *programs, int number)
{
    for (int i = 0; i < number; i++) {
        if (programs[i] == programs[number]) {
            return false;
        }
    }
    return true;
}

static void close_programs(const agent_supervisor_config_t *config,
                           const int *programs)
{
    for (int i = 0; i < config->pool_count; i++) {
        if (programs[i] >= 0 && is_first(programs, i)) {
            close(programs[i]);
        }
    }
}

/* The user of an application owns its folder, and may have put a link there
 * that leads to a file which it may not read, or a device. */
static int open_of_application(const agent_pool_config_t *pool)
{
    int fd = agent_process_open_as(pool->uid, pool->gid, pool->program);
    struct stat info;

    if (fd >= 0 && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))) {
        close(fd);
        fd = -1;
        errno = EACCES;
    }
    return fd;
}

/* Pools of one program share its descriptor, those of applications excepted. */
static int open_program(const agent_supervisor_config_t *config,
                        const int *programs, int number)
{
    const agent_pool_config_t *pool = &config->pools[number];
    int fd;

    /* Bounded: AGENT_POOLS_MAX_RUNNERS pools. */
    for (int i = 0; i < number && pool->application == NULL; i++) {
        if (config->pools[i].application == NULL
            && strcmp(config->pools[i].program, pool->program) == 0) {
            return programs[i];
        }
    }
    fd = pool->application != NULL ? open_of_application(pool)
                                   : open(pool->program, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        keep_script_open(fd);
    }
    return fd;
}

static apr_status_t open_programs(const agent_supervisor_config_t *config,
                                  int *programs, const char **failed)
{
    for (int i = 0; i < config->pool_count; i++) {
        programs[i] = -1;
    }
    for (int i = 0; i < config->pool_count; i++) {
        programs[i] = open_program(config, programs, i);
        if (programs[i] < 0 && config->pools[i].application == NULL) {
            apr_status_t rv = APR_FROM_OS_ERROR(errno);

            *failed = config->pools[i].program;
            close_programs(config, programs);
            return rv;
        }
    }
    return APR_SUCCESS;
}

/* Opens the directory of the cgroups and removes those of a spawner that was
 * killed. *fd -1: the pools have none. */
static apr_status_t prepare_cgroups(int *fd,
                                    const agent_supervisor_config_t *config,
                                    const char **failed)
{
    apr_status_t rv;

    *fd = -1;
    if (config->cgroup == NULL) {
        return APR_SUCCESS;
    }
    rv = agent_cgroup_open(fd, config->cgroup);
    if (rv != APR_SUCCESS) {
        *failed = config->cgroup;
        return rv;
    }
    agent_cgroup_remove_stale(*fd);
    return APR_SUCCESS;
}

static apr_status_t fork_spawner(agent_spawner_t *spawner,
                                 const agent_supervisor_config_t *config,
                                 const int *programs, int cgroup)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return APR_FROM_OS_ERROR(errno);
    }
    spawner->fd = ends[0];
    spawner->can_mark = agent_process_can_mark();
    spawner->pid = fork();
    if (spawner->pid == 0) {
        close(ends[0]);
        agent_spawner_serve(ends[1], programs, cgroup, spawner->can_mark,
                            config);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return spawner->pid > 0 ? APR_SUCCESS : APR_FROM_OS_ERROR(errno);
}

apr_status_t agent_spawner_start(agent_spawner_t *spawner,
                                 const agent_supervisor_config_t *config,
                                 const char **path)
{
    int programs[AGENT_POOLS_MAX_RUNNERS];
    int cgroup;
    apr_status_t rv = config->pool_count <= AGENT_POOLS_MAX_RUNNERS
        ? open_programs(config, programs, path)
        : APR_EINVAL;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = prepare_cgroups(&cgroup, config, path);
    if (rv == APR_SUCCESS) {
        rv = fork_spawner(spawner, config, programs, cgroup);
    }
    close_programs(config, programs);
    if (cgroup >= 0) {
        close(cgroup);
    }
    return rv;
}

static apr_status_t send_message(const agent_spawner_t *spawner,
                                 const struct msghdr *header)
{
    ssize_t sent;

    do {
        sent = sendmsg(spawner->fd, header, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? APR_FROM_OS_ERROR(errno) : APR_SUCCESS;
}

apr_status_t agent_spawner_spawn(const agent_spawner_t *spawner,
                                 apr_uint32_t id, int pool,
                                 const int fds[AGENT_SPAWNER_FDS])
{
    agent_spawner_message_t message = {AGENT_SPAWNER_DO_SPAWN, id, pool};
    struct iovec bytes = {&message, sizeof(message)};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * AGENT_SPAWNER_FDS)];
    } control = {.room = {0}};
    struct msghdr header = {.msg_iov = &bytes,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control.room)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);

    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * AGENT_SPAWNER_FDS);
    memcpy(CMSG_DATA(rights), fds, sizeof(int) * AGENT_SPAWNER_FDS);
    return send_message(spawner, &header);
}

apr_status_t agent_spawner_kill(const agent_spawner_t *spawner, apr_uint32_t id,
                                int number)
{
    agent_spawner_message_t message = {AGENT_SPAWNER_DO_KILL, id, number};
    struct iovec bytes = {&message, sizeof(message)};
    struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1};

    return send_message(spawner, &header);
}

agent_spawner_update_t agent_spawner_receive(const agent_spawner_t *spawner,
                                             apr_uint32_t *id, int *value)
{
    agent_spawner_message_t message;
    ssize_t length;

    do {
        length = recv(spawner->fd, &message, sizeof(message), 0);
    } while (length < 0 && errno == EINTR);
    if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        return AGENT_SPAWNER_NOTHING;
    }
    if (length != sizeof(message)) {
        return AGENT_SPAWNER_LOST;
    }
    *id = message.id;
    *value = message.value;
    return (agent_spawner_update_t)message.kind;
}

void agent_spawner_stop(agent_spawner_t *spawner, int timeout_ms)
{
    apr_time_t deadline = agent_clock_now() + apr_time_from_msec(timeout_ms);
    agent_spawner_message_t message;

    /* End of file for the spawner. It reports all exits, then ends, which is
     * end of file here. */
    shutdown(spawner->fd, SHUT_WR);
    for (;;) {
        struct pollfd socket = {.fd = spawner->fd, .events = POLLIN};
        apr_interval_time_t left = deadline - agent_clock_now();

        if (left <= 0
            || poll(&socket, 1, (int)apr_time_as_msec(left) + 1) == 0) {
            return;
        }
        if (recv(spawner->fd, &message, sizeof(message), 0) == 0) {
            break;
        }
    }
    waitpid(spawner->pid, NULL, 0);
    close(spawner->fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spawner process; see spawner_private.h. It may run as root: it parses
 * nothing, allocates nothing and has a fixed number of runners.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "spawner_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../base/types.h"
#include "cgroup.h"
#include "process.h"

/* More than the supervisor ever has, draining ones included. */
#define MAX_CHILDREN (AGENT_RUNNERS_MAX + 50)

/* Until a cgroup with processes is tried again; and at the end. */
#define REMOVE_MS   1000
#define LAST_TRIES  20
#define LAST_TRY_MS 10

/* Of the list of children that are read at once. */
#define LIST_BYTES 4096

typedef struct child_t {
    apr_uint32_t id;
    /* 0: this slot is free. */
    pid_t pid;
    int pool;
} child_t;

typedef struct spawner_t {
    int fd;
    const int *programs;
    int signal_fd;
    const agent_supervisor_config_t *config;
    child_t children[MAX_CHILDREN];
    /* The directory of the cgroups; -1: pools have none. */
    int cgroup;
    /* Whether the pool's cgroup exists. */
    bool has_cgroup[AGENT_POOLS_MAX_RUNNERS];
    bool can_mark;
} spawner_t;

static void send_update(const spawner_t *s, agent_spawner_update_t update,
                        apr_uint32_t id, int value)
{
    agent_spawner_message_t message = {(apr_int32_t)update, id, value};

    /* Fails when the supervisor has ended, which read_request() notices. */
    while (send(s->fd, &message, sizeof(message), MSG_NOSIGNAL) < 0
           && errno == EINTR) {
    }
}

static void signal_child(const child_t *child, int number)
{
    kill(-child->pid, number);
    kill(child->pid, number);
}

static child_t *find_child(spawner_t *s, pid_t pid)
{
    for (int i = 0; i < MAX_CHILDREN; i++) {
        if (s->children[i].pid == pid) {
            return &s->children[i];
        }
    }
    return NULL;
}

/* ---- cgroups ---- */

static void print_cgroup(char out[AGENT_CGROUP_NAME_SIZE], const spawner_t *s,
                         int pool)
{
    agent_cgroup_print_name(out, getpid(), pool,
                            s->config->pools[pool].deployment);
}

/* A failure does not stop the runner. */
static void enter_cgroup(spawner_t *s, const child_t *child)
{
    char name[AGENT_CGROUP_NAME_SIZE];
    const char *failed;
    apr_status_t rv;

    print_cgroup(name, s, child->pool);
    s->has_cgroup[child->pool] = true;
    rv = agent_cgroup_enter(&failed, s->cgroup, name,
                            &s->config->pools[child->pool].limits, child->pid);
    if (rv != APR_SUCCESS) {
        send_update(s, AGENT_SPAWNER_UNLIMITED, child->id, APR_TO_OS_ERROR(rv));
    }
}

static bool has_children(const spawner_t *s, int pool)
{
    for (int i = 0; i < MAX_CHILDREN; i++) {
        if (s->children[i].pid != 0 && s->children[i].pool == pool) {
            return true;
        }
    }
    return false;
}

/* Removes those of pools without a runner. False: processes that runners have
 * left are still ending in one. */
static bool remove_cgroups(spawner_t *s)
{
    char name[AGENT_CGROUP_NAME_SIZE];
    bool is_done = true;

    for (int i = 0; i < s->config->pool_count; i++) {
        if (s->has_cgroup[i] && !has_children(s, i)) {
            print_cgroup(name, s, i);
            s->has_cgroup[i] = !agent_cgroup_remove(s->cgroup, name);
            is_done = is_done && !s->has_cgroup[i];
        }
    }
    return is_done;
}

static void remove_last_cgroups(spawner_t *s)
{
    for (int i = 0; i < LAST_TRIES && !remove_cgroups(s); i++) {
        poll(NULL, 0, LAST_TRY_MS);
    }
}

/* ---- runners ---- */

/* Returns when the parent has closed the other end: it has moved this process
 * into its cgroup, if pools have cgroups and that succeeded. */
static void wait_for_parent(const int gate[2])
{
    char byte;

    close(gate[1]);
    while (read(gate[0], &byte, 1) < 0 && errno == EINTR) {
    }
}

static void exec_runner(const spawner_t *s, apr_uint32_t id, int pool,
                        const int *fds, pid_t parent)
{
    const agent_spawn_params_t params = {.id = id,
                                         .pool = &s->config->pools[pool],
                                         .program = s->programs[pool],
                                         .uid = s->config->uid,
                                         .gid = s->config->gid,
                                         .parent = parent};

    agent_spawner_exec(&params, fds);
}

static void close_gate(const int gate[2])
{
    for (int i = 0; i < 2; i++) {
        if (gate[i] >= 0) {
            close(gate[i]);
        }
    }
}

/* As fork(); the child waits until the gate is closed. */
static pid_t fork_runner(const spawner_t *s, apr_uint32_t id, int pool,
                         const int *fds, const int gate[2])
{
    pid_t self = getpid();
    pid_t pid = fork();

    if (pid == 0) {
        wait_for_parent(gate);
        exec_runner(s, id, pool, fds, self);
    }
    return pid;
}

/* False, and errno: there is no such pool, or its program could not be opened
 * at the start. */
static bool has_program(const spawner_t *s, int pool)
{
    bool exists = pool >= 0 && pool < s->config->pool_count;

    errno = exists ? ENOENT : EINVAL;
    return exists && s->programs[pool] >= 0;
}

static void start_runner(spawner_t *s, apr_uint32_t id, int pool,
                         const int *fds)
{
    child_t *child = find_child(s, 0);
    int gate[2] = {-1, -1};
    pid_t pid = -1;

    errno = EAGAIN;
    if (child != NULL && has_program(s, pool) && pipe2(gate, O_CLOEXEC) == 0) {
        pid = fork_runner(s, id, pool, fds, gate);
    }
    if (pid < 0) {
        send_update(s, AGENT_SPAWNER_REFUSED, id, errno);
    }
    else {
        *child = (child_t){.id = id, .pid = pid, .pool = pool};
        send_update(s, AGENT_SPAWNER_STARTED, id, pid);
        if (s->cgroup >= 0) {
            enter_cgroup(s, child);
        }
    }
    close_gate(gate);
}

/* Takes the descriptors of a message, to be closed by the caller; how many:
 * fewer than were sent, if this process may open no more. */
static int take_fds(struct msghdr *header, int fds[AGENT_SPAWNER_FDS])
{
    struct cmsghdr *rights = CMSG_FIRSTHDR(header);
    int count = 0;

    if (rights != NULL && rights->cmsg_type == SCM_RIGHTS) {
        while (count < AGENT_SPAWNER_FDS
               && rights->cmsg_len >= CMSG_LEN(sizeof(int) * (count + 1))) {
            count++;
        }
        memcpy(fds, CMSG_DATA(rights), sizeof(int) * count);
    }
    return count;
}

static void kill_runner(spawner_t *s, apr_uint32_t id, int number)
{
    for (int i = 0; i < MAX_CHILDREN; i++) {
        if (s->children[i].pid != 0 && s->children[i].id == id) {
            signal_child(&s->children[i], number);
        }
    }
}

static void handle_request(spawner_t *s, const agent_spawner_message_t *message,
                           struct msghdr *header)
{
    int fds[AGENT_SPAWNER_FDS];
    int count = take_fds(header, fds);

    if (message->kind == AGENT_SPAWNER_DO_KILL) {
        kill_runner(s, message->id, message->value);
    }
    else if (message->kind == AGENT_SPAWNER_DO_SPAWN) {
        if (count == AGENT_SPAWNER_FDS) {
            start_runner(s, message->id, message->value, fds);
        }
        else {
            send_update(s, AGENT_SPAWNER_REFUSED, message->id, EMFILE);
        }
    }
    for (int i = 0; i < count; i++) {
        close(fds[i]);
    }
}

/* One request; false when the supervisor has ended. */
static bool read_request(spawner_t *s)
{
    agent_spawner_message_t message;
    struct iovec bytes = {&message, sizeof(message)};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int) * AGENT_SPAWNER_FDS)];
    } control;
    struct msghdr header = {
        .msg_iov = &bytes,
        .msg_iovlen = 1,
        .msg_control = &control,
        /* Without the padding, which has room for one more. */
        .msg_controllen = CMSG_LEN(sizeof(int) * AGENT_SPAWNER_FDS)};
    ssize_t length = recvmsg(s->fd, &header, MSG_CMSG_CLOEXEC);

    if (length < 0) {
        return errno == EINTR || errno == EAGAIN;
    }
    if (length != sizeof(message)) {
        return false;
    }
    handle_request(s, &message, &header);
    return true;
}

static void reap_child(spawner_t *s, pid_t pid)
{
    child_t *child = find_child(s, pid);
    int status = 0;

    if (child != NULL) {
        /* Kills the other processes of its group before waitpid() frees its pid
         * for reuse. */
        kill(-pid, SIGKILL);
    }
    waitpid(pid, &status, 0);
    if (child != NULL) {
        child->pid = 0;
        send_update(s, AGENT_SPAWNER_EXITED, child->id, status);
    }
}

/* Reaps a child that has ended; how = WNOHANG, or 0 to wait for one. False:
 * there is none. */
static bool reap_next(spawner_t *s, int how)
{
    siginfo_t ended = {.si_pid = 0};
    int rv;

    do {
        rv = waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT | how);
    } while (rv != 0 && errno == EINTR);
    if (rv != 0 || ended.si_pid == 0) {
        return false;
    }
    reap_child(s, ended.si_pid);
    return true;
}

/* ---- processes that runners have left ---- */

static bool has_runners(const spawner_t *s)
{
    for (int i = 0; i < MAX_CHILDREN; i++) {
        if (s->children[i].pid != 0) {
            return true;
        }
    }
    return false;
}

/* Whether it is a runner, or a process of a runner that has not ended. It may
 * be one of any runner that lives where they cannot be marked. */
static bool is_of_runner(spawner_t *s, pid_t pid)
{
    apr_int64_t mark;

    if (find_child(s, pid) != NULL || (!s->can_mark && has_runners(s))) {
        return true;
    }
    mark = agent_process_mark(pid);
    for (int i = 0; i < MAX_CHILDREN; i++) {
        if (s->children[i].pid != 0 && s->children[i].id == mark) {
            return true;
        }
    }
    return false;
}

/* Counts it if it is of no runner. */
static void kill_left(spawner_t *s, pid_t pid, int *count)
{
    if (pid > 0 && !is_of_runner(s, pid)) {
        kill(pid, SIGKILL);
        (*count)++;
    }
}

/*
 * Kills the children that this process has adopted of runners that have ended:
 * those that have left the group of their runner. Their own children are
 * adopted when they have ended. Returns how many there are, also those that
 * have ended; 0 where the kernel does not list children.
 */
static int kill_adopted(spawner_t *s)
{
    char text[LIST_BYTES];
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    pid_t pid = 0;
    int count = 0;
    ssize_t length;

    if (fd < 0) {
        return 0;
    }
    while ((length = read(fd, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < length; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            }
            else {
                kill_left(s, pid, &count);
                pid = 0;
            }
        }
    }
    kill_left(s, pid, &count);
    close(fd);
    return count;
}

static void reap_ended(spawner_t *s)
{
    while (reap_next(s, WNOHANG)) {
    }
    kill_adopted(s);
}

static void take_signals(const spawner_t *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof(info)) > 0) {
    }
}

/* All of them, and waits for their end. */
static void kill_children(spawner_t *s)
{
    for (int i = 0; i < MAX_CHILDREN; i++) {
        if (s->children[i].pid != 0) {
            signal_child(&s->children[i], SIGKILL);
        }
    }
    while ((has_runners(s) || kill_adopted(s) > 0) && reap_next(s, 0)) {
        reap_ended(s);
    }
}

/* Closes all other descriptors; false when that is not possible. */
static bool keep_descriptors(const spawner_t *s)
{
    int keep[AGENT_POOLS_MAX_RUNNERS + 2] = {s->fd, s->cgroup};

    for (int i = 0; i < s->config->pool_count; i++) {
        keep[i + 2] = s->programs[i];
    }
    return agent_process_close_fds(keep, s->config->pool_count + 2);
}

void agent_spawner_serve(int fd, const int *programs, int cgroup, bool can_mark,
                         const agent_supervisor_config_t *config)
{
    static const int signals[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,
                                  SIGUSR1, SIGUSR2, SIGQUIT, 0};
    spawner_t s = {.fd = fd,
                   .programs = programs,
                   .config = config,
                   .cgroup = cgroup,
                   .can_mark = can_mark};
    struct pollfd fds[2];

    agent_process_name("agent-spawner");
    /* Leaves the process group, which the parent or a terminal signals as a
     * whole. */
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!keep_descriptors(&s)) {
        /* Runners would inherit open descriptors. The supervisor notices the
         * exit. */
        _exit(1);
    }
    agent_process_reset_signals();
    /* It ends only with the supervisor: signals are read and ignored. */
    s.signal_fd = agent_process_signal_fd(signals);
    fds[0] = (struct pollfd){.fd = fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = s.signal_fd, .events = POLLIN};
    for (;;) {
        int timeout = remove_cgroups(&s) ? -1 : REMOVE_MS;

        if (poll(fds, 2, timeout) < 0 && errno != EINTR) {
            break;
        }
        if (fds[1].revents != 0) {
            take_signals(&s);
            reap_ended(&s);
        }
        if (fds[0].revents != 0 && !read_request(&s)) {
            break;
        }
    }
    kill_children(&s);
    remove_last_cgroups(&s);
    _exit(0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of pools; see cgroup.h, and Documentation/admin-guide/cgroup-v2
 * of Linux. It allocates nothing but the stream of one directory. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/magic.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define PREFIX "agent-"
/* Time for processes that a killed spawner has left to end. */
#define STALE_TRIES  20
#define STALE_TRY_MS 10
/* Microseconds: the period of cpu.max, and a hundredth of it. */
#define CPU_PERIOD  100000
#define CPU_PERCENT 1000

apr_status_t agent_cgroup_open(int *fd, const char *directory)
{
    struct statfs system;

    *fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0) {
        return APR_FROM_OS_ERROR(errno);
    }
    if (fstatfs(*fd, &system) != 0 || system.f_type != CGROUP2_SUPER_MAGIC) {
        close(*fd);
        *fd = -1;
        return APR_ENOTIMPL;
    }
    return APR_SUCCESS;
}

void agent_cgroup_print_name(char out[AGENT_CGROUP_NAME_SIZE], pid_t spawner,
                             int pool, const char *deployment)
{
    snprintf(out, AGENT_CGROUP_NAME_SIZE, PREFIX "%d-%d-%s", (int)spawner, pool,
             deployment);
}

static apr_status_t write_file(const char **what, int fd, const char *name,
                               const char *text)
{
    int file = openat(fd, name, O_WRONLY | O_CLOEXEC);
    apr_status_t rv = APR_SUCCESS;

    if (file < 0 || write(file, text, strlen(text)) < 0) {
        rv = APR_FROM_OS_ERROR(errno);
        *what = name;
    }
    if (file >= 0) {
        close(file);
    }
    return rv;
}

/* value 0: no limit, which is what a new cgroup has. */
static apr_status_t write_limit(const char **what, int fd, const char *name,
                                apr_int64_t value)
{
    char text[32];

    if (value == 0) {
        return APR_SUCCESS;
    }
    snprintf(text, sizeof(text), "%" APR_INT64_T_FMT, value);
    return write_file(what, fd, name, text);
}

static apr_status_t write_cpu(const char **what, int fd, int percent)
{
    char text[64];

    if (percent == 0) {
        return APR_SUCCESS;
    }
    snprintf(text, sizeof(text), "%" APR_INT64_T_FMT " %d",
             (apr_int64_t)percent * CPU_PERCENT, CPU_PERIOD);
    return write_file(what, fd, "cpu.max", text);
}

static apr_status_t fill(const char **what, int fd,
                         const agent_cgroup_limits_t *limits, pid_t pid)
{
    apr_status_t rv = write_limit(what, fd, "memory.max", limits->memory);

    if (rv == APR_SUCCESS) {
        rv = write_limit(what, fd, "pids.max", limits->processes);
    }
    if (rv == APR_SUCCESS) {
        rv = write_cpu(what, fd, limits->cpu_percent);
    }
    return rv == APR_SUCCESS ? write_limit(what, fd, "cgroup.procs", pid) : rv;
}

apr_status_t agent_cgroup_enter(const char **what, int fd, const char *name,
                                const agent_cgroup_limits_t *limits, pid_t pid)
{
    apr_status_t rv;
    int own;

    *what = "mkdir";
    if (mkdirat(fd, name, 0755) != 0 && errno != EEXIST) {
        return APR_FROM_OS_ERROR(errno);
    }
    own = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0) {
        return APR_FROM_OS_ERROR(errno);
    }
    rv = fill(what, own, limits, pid);
    close(own);
    return rv;
}

bool agent_cgroup_remove(int fd, const char *name)
{
    int own = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *what;

    if (own >= 0) {
        /* Missing before Linux 5.14: then the processes end by themselves. */
        write_file(&what, own, "cgroup.kill", "1");
        close(own);
    }
    return unlinkat(fd, name, AT_REMOVEDIR) == 0 || errno != EBUSY;
}

/* Whether it is the name of a cgroup of a process that has ended. */
static bool is_stale(const char *name)
{
    long pid = strncmp(name, PREFIX, strlen(PREFIX)) == 0
        ? strtol(name + strlen(PREFIX), NULL, 10)
        : 0;

    return pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

void agent_cgroup_remove_stale(int fd)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = own >= 0 ? fdopendir(own) : NULL;
    const struct dirent *entry;

    if (directory == NULL) {
        return;
    }
    while ((entry = readdir(directory)) != NULL) {
        for (int i = 0; is_stale(entry->d_name) && i < STALE_TRIES; i++) {
            if (agent_cgroup_remove(fd, entry->d_name)) {
                break;
            }
            poll(NULL, 0, STALE_TRY_MS);
        }
    }
    closedir(directory);
}

/* ---- the check ---- */

static apr_status_t enable(const char **what, int fd,
                           const agent_cgroup_limits_t *limits)
{
    static const char file[] = "cgroup.subtree_control";
    apr_status_t rv = APR_SUCCESS;

    if (limits->memory != 0) {
        rv = write_file(what, fd, file, "+memory");
        *what = "cgroup.subtree_control, +memory";
    }
    if (rv == APR_SUCCESS && limits->processes != 0) {
        rv = write_file(what, fd, file, "+pids");
        *what = "cgroup.subtree_control, +pids";
    }
    if (rv == APR_SUCCESS && limits->cpu_percent != 0) {
        rv = write_file(what, fd, file, "+cpu");
        *what = "cgroup.subtree_control, +cpu";
    }
    return rv;
}

static apr_status_t rehearse(const char **what, int fd,
                             const agent_cgroup_limits_t *limits)
{
    char name[AGENT_CGROUP_NAME_SIZE];
    pid_t pid = fork();
    apr_status_t rv;

    *what = "fork";
    if (pid < 0) {
        return APR_FROM_OS_ERROR(errno);
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            pause();
        }
    }
    agent_cgroup_print_name(name, getpid(), 0, "check");
    rv = agent_cgroup_enter(what, fd, name, limits, pid);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    agent_cgroup_remove(fd, name);
    return rv;
}

apr_status_t agent_cgroup_check(const char **what, const char *directory,
                                const agent_cgroup_limits_t *limits)
{
    apr_status_t rv;
    int fd;

    rv = agent_cgroup_open(&fd, directory);
    if (rv != APR_SUCCESS) {
        *what = rv == APR_ENOTIMPL ? "not in a file system of cgroup v2"
                                   : "open";
        return rv;
    }
    rv = enable(what, fd, limits);
    if (rv == APR_SUCCESS) {
        rv = rehearse(what, fd, limits);
    }
    close(fd);
    return rv;
}

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

static apr_status_t write_file(const char **failed, int fd, const char *name,
                               const char *text)
{
    int file = openat(fd, name, O_WRONLY | O_CLOEXEC);
    apr_status_t rv = APR_SUCCESS;

    if (file < 0 || write(file, text, strlen(text)) < 0) {
        rv = APR_FROM_OS_ERROR(errno);
        *failed = name;
    }
    if (file >= 0) {
        close(file);
    }
    return rv;
}

static apr_status_t write_number(const char **failed, int fd, const char *name,
                                 apr_int64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%" APR_INT64_T_FMT, value);
    return write_file(failed, fd, name, text);
}

/* value 0: no limit, which is what a new cgroup has. */
static apr_status_t write_limit(const char **failed, int fd, const char *name,
                                apr_int64_t value)
{
    return value == 0 ? APR_SUCCESS : write_number(failed, fd, name, value);
}

static apr_status_t write_cpu(const char **failed, int fd, int percent)
{
    char text[64];

    if (percent == 0) {
        return APR_SUCCESS;
    }
    snprintf(text, sizeof(text), "%" APR_INT64_T_FMT " %d",
             (apr_int64_t)percent * CPU_PERCENT, CPU_PERIOD);
    return write_file(failed, fd, "cpu.max", text);
}

static apr_status_t write_limits(const char **failed, int fd,
                                 const agent_cgroup_limits_t *limits)
{
    apr_status_t rv = write_limit(failed, fd, "memory.max", limits->memory);

    if (rv == APR_SUCCESS) {
        rv = write_limit(failed, fd, "pids.max", limits->processes);
    }
    return rv == APR_SUCCESS ? write_cpu(failed, fd, limits->cpu_percent) : rv;
}

apr_status_t agent_cgroup_enter(const char **failed, int fd, const char *name,
                                const agent_cgroup_limits_t *limits, pid_t pid)
{
    apr_status_t rv;
    int cgroup;

    *failed = "mkdir";
    if (mkdirat(fd, name, 0755) != 0 && errno != EEXIST) {
        return APR_FROM_OS_ERROR(errno);
    }
    cgroup = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cgroup < 0) {
        return APR_FROM_OS_ERROR(errno);
    }
    rv = write_limits(failed, cgroup, limits);
    if (rv == APR_SUCCESS) {
        rv = write_number(failed, cgroup, "cgroup.procs", pid);
    }
    close(cgroup);
    return rv;
}

/* Kills those that are in it now. Others that they start during this remain. */
static void kill_each(int fd)
{
    int file = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    char text[1024];
    ssize_t length;
    /* A line may begin in one part of the file and end in the next one. */
    pid_t pid = 0;

    if (file < 0) {
        return;
    }
    while ((length = read(file, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < length; i++) {
            if (text[i] != '\n') {
                pid = 10 * pid + (text[i] - '0');
                continue;
            }
            /* 0: a process of another PID namespace; to kill() this group. */
            if (pid > 0) {
                kill(pid, SIGKILL);
            }
            pid = 0;
        }
    }
    close(file);
}

bool agent_cgroup_remove(int fd, const char *name)
{
    int cgroup = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *failed;

    if (cgroup >= 0) {
        /* Linux has this file since 5.14. */
        if (write_file(&failed, cgroup, "cgroup.kill", "1") != APR_SUCCESS) {
            kill_each(cgroup);
        }
        close(cgroup);
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
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;
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

/* Whether a process is in the cgroup itself: it could have no controllers. */
static bool has_processes(int fd)
{
    int file = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    char byte;
    bool has = file >= 0 && read(file, &byte, 1) > 0;

    if (file >= 0) {
        close(file);
    }
    return has;
}

static apr_status_t enable(agent_cgroup_problem_t *problem, int fd,
                           apr_int64_t limit, const char *controller,
                           const char *expected)
{
    apr_status_t rv = limit == 0
        ? APR_SUCCESS
        : write_file(&problem->failed, fd, "cgroup.subtree_control",
                     controller);

    if (APR_STATUS_IS_ENOENT(rv)) {
        problem->expected = expected;
        problem->failed = "cgroup.controllers";
    }
    return rv;
}

/* Enables the controllers of the limits. */
static apr_status_t enable_all(agent_cgroup_problem_t *problem, int fd,
                               const agent_cgroup_limits_t *limits)
{
    apr_status_t rv = enable(
        problem, fd, limits->memory, "+memory",
        "a cgroup with the controller memory, which AgentPoolMemory needs");

    if (rv == APR_SUCCESS) {
        rv = enable(
            problem, fd, limits->processes, "+pids",
            "a cgroup with the controller pids, which AgentPoolProcesses "
            "needs");
    }
    return rv == APR_SUCCESS
        ? enable(problem, fd, limits->cpu_percent, "+cpu",
                 "a cgroup with the controller cpu, which AgentPoolCPU needs")
        : rv;
}

static apr_status_t try_limits(const char **failed, int fd,
                               const agent_cgroup_limits_t *limits)
{
    char name[AGENT_CGROUP_NAME_SIZE];
    pid_t pid = fork();
    apr_status_t rv;

    *failed = "fork";
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
    rv = agent_cgroup_enter(failed, fd, name, limits, pid);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    agent_cgroup_remove(fd, name);
    return rv;
}

static apr_status_t check_directory(agent_cgroup_problem_t *problem, int fd,
                                    const agent_cgroup_limits_t *limits)
{
    apr_status_t rv;

    if (has_processes(fd)) {
        problem->expected = "a cgroup without processes of its own";
        problem->failed = "cgroup.procs";
        return APR_FROM_OS_ERROR(EBUSY);
    }
    problem->expected = "a cgroup that is delegated to this server";
    rv = enable_all(problem, fd, limits);
    return rv == APR_SUCCESS ? try_limits(&problem->failed, fd, limits) : rv;
}

apr_status_t agent_cgroup_check(agent_cgroup_problem_t *problem,
                                const char *directory,
                                const agent_cgroup_limits_t *limits)
{
    apr_status_t rv;
    int fd;

    problem->expected = "a directory in a file system of cgroup v2";
    problem->failed = "open";
    rv = agent_cgroup_open(&fd, directory);
    if (rv == APR_ENOTIMPL) {
        problem->failed = "statfs";
    }
    if (rv == APR_SUCCESS) {
        rv = check_directory(problem, fd, limits);
        close(fd);
    }
    return rv;
}

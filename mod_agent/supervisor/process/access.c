/* SPDX-License-Identifier: Apache-2.0 */
/* Tries files out with the rights of another user; see access.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "access.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "process.h"

/* The report of the child. */
typedef struct outcome_t {
    /* The number of the member of agent_access_t, from 1 on; 0: the user. */
    int step;
    /* errno; 0: all are possible. */
    int number;
} outcome_t;

/* A folder can be "executed" too. */
static int check_program(const char *path)
{
    struct stat info;

    return stat(path, &info) != 0 ? errno
        : S_ISDIR(info.st_mode)   ? EISDIR
        : S_ISREG(info.st_mode)   ? 0
                                  : EACCES;
}

static outcome_t try(uid_t uid, gid_t gid, const agent_access_t *paths)
{
    const struct {
        const char *path;
        int mode;
    } steps[] = {{paths->directory, R_OK | X_OK},
                 {paths->file, R_OK},
                 {paths->program, R_OK | X_OK},
                 {paths->argument, R_OK}};
    apr_status_t rv = agent_process_become(uid, gid);

    if (rv != APR_SUCCESS) {
        return (outcome_t){0, APR_TO_OS_ERROR(rv)};
    }
    for (int i = 0; i < 4; i++) {
        if (faccessat(AT_FDCWD, steps[i].path, steps[i].mode, AT_EACCESS) != 0
            || (i == 0 && chdir(steps[i].path) != 0)) {
            return (outcome_t){i + 1, errno};
        }
    }
    if (check_program(paths->program) != 0) {
        return (outcome_t){3, check_program(paths->program)};
    }
    return (outcome_t){0, 0};
}

/* Never returns to the server's code, whose memory the child has. */
static void report(int fd, uid_t uid, gid_t gid, const agent_access_t *paths)
{
    outcome_t outcome = try(uid, gid, paths);

    _exit(write(fd, &outcome, sizeof(outcome)) == sizeof(outcome) ? 0 : 1);
}

static ssize_t read_outcome(outcome_t *outcome, int fd)
{
    ssize_t length;

    do {
        length = read(fd, outcome, sizeof(*outcome));
    } while (length < 0 && errno == EINTR);
    return length;
}

apr_status_t agent_access_check(const char **failed, uid_t uid, gid_t gid,
                                const agent_access_t *paths)
{
    const char *const names[] = {NULL, paths->directory, paths->file,
                                 paths->program, paths->argument};
    outcome_t outcome = {0, ECHILD};
    int ends[2];
    pid_t pid;

    *failed = NULL;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return APR_FROM_OS_ERROR(errno);
    }
    pid = fork();
    if (pid == 0) {
        report(ends[1], uid, gid, paths);
    }
    close(ends[1]);
    if (pid > 0 && read_outcome(&outcome, ends[0]) != sizeof(outcome)) {
        outcome = (outcome_t){0, ECHILD};
    }
    close(ends[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    *failed = names[outcome.step];
    return outcome.number == 0 ? APR_SUCCESS
                               : APR_FROM_OS_ERROR(outcome.number);
}

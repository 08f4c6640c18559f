/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded by daemon.t: while the file that AGENT_TEST_REFUSE_FORK names
 * exists, fork() fails, as when the system has no room for another process. A
 * signal to the process's own group creates the file of that name and ".group".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

pid_t fork(void)
{
    const char *file = getenv("AGENT_TEST_REFUSE_FORK");
    pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");

    if (file != NULL && access(file, F_OK) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return next();
}

int kill(pid_t pid, int sig)
{
    const char *file = getenv("AGENT_TEST_REFUSE_FORK");
    int (*next)(pid_t, int) = (int (*)(pid_t, int))dlsym(RTLD_NEXT, "kill");

    if (file != NULL && pid == 0) {
        char mark[PATH_MAX];

        snprintf(mark, sizeof(mark), "%s.group", file);
        close(open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    }
    return next(pid, sig);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded by parking_failure.t: while the file that AGENT_TEST_FAIL_EPOLL
 * names exists, no eventfd can be added to an epoll set, as when the kernel has
 * no memory for it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static int is_eventfd(int fd)
{
    char path[64];
    char target[64] = {0};

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return readlink(path, target, sizeof(target) - 1) > 0
        && strstr(target, "[eventfd]") != NULL;
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    int (*real)(int, int, int, struct epoll_event *) = dlsym(RTLD_NEXT,
                                                             "epoll_ctl");
    const char *flag = getenv("AGENT_TEST_FAIL_EPOLL");

    if (op == EPOLL_CTL_ADD && flag != NULL && access(flag, F_OK) == 0
        && is_eventfd(fd)) {
        errno = ENOSPC;
        return -1;
    }
    return real(epfd, op, fd, event);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded by watches.t: while the file that AGENT_TEST_FAIL_EPOLL names
 * exists, epoll_ctl() fails for the descriptors that its text names: "add" or
 * "change", then "pipe" or "socket".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

/* "" while there is no file. */
static void read_text(char *text, size_t size)
{
    const char *file = getenv("AGENT_TEST_FAIL_EPOLL");
    int fd = file != NULL ? open(file, O_RDONLY | O_CLOEXEC) : -1;

    memset(text, 0, size);
    if (fd >= 0) {
        if (read(fd, text, size - 1) < 0) {
            abort();
        }
        close(fd);
    }
}

static bool is_named(const char *text, int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0
        && ((S_ISFIFO(status.st_mode) && strstr(text, "pipe") != NULL)
            || (S_ISSOCK(status.st_mode) && strstr(text, "socket") != NULL));
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    int (*next)(int, int, int, struct epoll_event *) = dlsym(RTLD_NEXT,
                                                             "epoll_ctl");
    char text[32];

    read_text(text, sizeof(text));
    if (op == EPOLL_CTL_ADD && strstr(text, "add") != NULL
        && is_named(text, fd)) {
        errno = ENOSPC;
        return -1;
    }
    if (op == EPOLL_CTL_MOD && strstr(text, "change") != NULL
        && is_named(text, fd)) {
        errno = EBADF;
        return -1;
    }
    return next(epfd, op, fd, event);
}

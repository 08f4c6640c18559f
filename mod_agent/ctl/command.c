/* SPDX-License-Identifier: Apache-2.0 */
/* Executes programs; see command.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "say.h"

/* output: what becomes standard output, and of a relayed program standard
 * error. The program is the leader of a process group, so that all of it can be
 * killed. */
static int start(pid_t *pid, const char *const *argv, int output,
                 bool is_relayed)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                     O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (is_relayed) {
        posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    }
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    error = posix_spawnp(pid, argv[0], &actions, &attributes,
                         (char *const *)(const void *)argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int wait_for(pid_t pid, const char *name, bool is_quiet)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) {
        return WEXITSTATUS(status);
    }
    if (!is_quiet) {
        ctl_error("%s was ended by signal %d", name, WTERMSIG(status));
    }
    return -1;
}

static int relay(const char *const *argv, const int *ends)
{
    char bytes[4096];
    ssize_t count;
    pid_t pid;
    int error = start(&pid, argv, ends[1], true);

    close(ends[1]);
    if (error != 0) {
        ctl_error("%s could not be started: %s", argv[0], strerror(error));
        return -1;
    }
    do {
        count = read(ends[0], bytes, sizeof(bytes));
        if (count > 0) {
            ctl_relay(bytes, (apr_size_t)count);
        }
    } while (count > 0 || (count < 0 && errno == EINTR));
    return wait_for(pid, argv[0], false);
}

int ctl_command_run(const char *const *argv)
{
    int ends[2];
    int status;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        ctl_error("pipe: %s", strerror(errno));
        return -1;
    }
    status = relay(argv, ends);
    close(ends[0]);
    return status;
}

/* ---- output ---- */

typedef struct output_t {
    char *bytes;
    apr_size_t length;
    apr_size_t size;
    apr_pool_t *pool;
} output_t;

/* Doubled, so that the copies are together as long as the text. */
static void grow(output_t *output)
{
    apr_size_t size = output->size > 0 ? 2 * output->size : 65536;
    char *bytes = apr_palloc(output->pool, size);

    if (output->length > 0) {
        memcpy(bytes, output->bytes, output->length);
    }
    output->bytes = bytes;
    output->size = size;
}

/* Returns what went wrong; NULL at the end of the file. */
static const char *read_output(output_t *output, int fd, apr_time_t end)
{
    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        apr_time_t left = end - apr_time_now();
        ssize_t count;

        if (left <= 0) {
            return "took too long";
        }
        if (poll(&poll_fd, 1, (int)apr_time_as_msec(left) + 1) <= 0) {
            continue;
        }
        if (output->length + 1 >= output->size) {
            if (output->size > CTL_OUTPUT_MAX) {
                return "wrote more than 64 MB";
            }
            grow(output);
        }
        count = read(fd, output->bytes + output->length,
                     output->size - output->length - 1);
        if (count == 0) {
            return NULL;
        }
        output->length += count > 0 ? (apr_size_t)count : 0;
    }
}

static int read_program(output_t *output, const char *const *argv,
                        int timeout_sec, const int *ends, bool is_quiet)
{
    apr_time_t end = apr_time_now() + apr_time_from_sec(timeout_sec);
    const char *problem;
    pid_t pid;
    int error = start(&pid, argv, ends[1], false);

    close(ends[1]);
    if (error != 0) {
        if (!is_quiet) {
            ctl_error("%s could not be started: %s", argv[0], strerror(error));
        }
        return -1;
    }
    problem = read_output(output, ends[0], end);
    if (problem == NULL) {
        return wait_for(pid, argv[0], is_quiet);
    }
    kill(-pid, SIGKILL);
    wait_for(pid, argv[0], true);
    if (!is_quiet) {
        ctl_error("%s %s", argv[0], problem);
    }
    return -1;
}

int ctl_command_read(char **output, const char *const *argv, int timeout_sec,
                     bool is_quiet, apr_pool_t *pool)
{
    output_t text = {.pool = pool};
    int ends[2];
    int status;

    *output = apr_pstrdup(pool, "");
    if (pipe2(ends, O_CLOEXEC) != 0) {
        ctl_error("pipe: %s", strerror(errno));
        return -1;
    }
    status = read_program(&text, argv, timeout_sec, ends, is_quiet);
    close(ends[0]);
    if (text.length > 0) {
        text.bytes[text.length] = '\0';
        *output = text.bytes;
    }
    return status;
}

apr_array_header_t *ctl_command_list(const char *name, apr_pool_t *pool)
{
    apr_array_header_t *list = apr_array_make(pool, 2, sizeof(const char *));
    const char *path = getenv("PATH");
    char *rest = apr_pstrdup(pool, path != NULL ? path : "");
    char *state;

    for (const char *folder = apr_strtok(rest, ":", &state); folder != NULL;
         folder = apr_strtok(NULL, ":", &state)) {
        /* Bounded: the folders of PATH. */
        const char *found = apr_pstrcat(pool, folder, "/", name, NULL);

        if (access(found, X_OK) == 0) {
            APR_ARRAY_PUSH(list, const char *) = found;
        }
    }
    return list;
}

const char *ctl_command_find(const char *name, apr_pool_t *pool)
{
    const apr_array_header_t *list = ctl_command_list(name, pool);

    return list->nelts > 0 ? APR_ARRAY_IDX(list, 0, const char *) : NULL;
}

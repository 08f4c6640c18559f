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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>
#include <apr_time.h>

#include "../../core/sanitizer.h"
#include "../base/output.h"

/* Bytes of the list of this process's children that are read at once. */
#define CHILDREN_BYTES 512

/* The most that a pipe holds, if nobody has changed its size. */
#define PIPE_BYTES 65536

/* ended: a descriptor that is readable when the program has ended. errors: -1
 * where standard error is the same pipe as standard output. */
typedef struct program_t {
    const char *name;
    pid_t pid;
    int ended;
    int output;
    int errors;
} program_t;

/* The file to which ctl_command_run() writes the output of programs; NULL:
 * standard output. Set once. */
static FILE *log_file;

/* Bytes; 0: no limit. */
static apr_int64_t memory_limit;

void ctl_command_limit_memory(apr_int64_t bytes)
{
    memory_limit = bytes;
}

typedef struct output_t {
    char *bytes;
    apr_size_t length;
    apr_size_t size;
    apr_pool_t *pool;
} output_t;

/* ---- signals ---- */

/* The signal that is to end this process; it ends its program first, which is
 * in a process group of its own. */
static volatile sig_atomic_t ending;

static void note_end(int number)
{
    ending = number;
}

void ctl_command_init(void)
{
    struct sigaction action = {.sa_handler = note_end};

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

int ctl_command_signal(void)
{
    return ending;
}

static void block_signals(int how)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(how, &signals, NULL);
}

/* ---- start ---- */

/* Sets the limit of the program that is started next, which inherits it. This
 * process can raise it again, and so can the program: it guards against
 * mistakes only. */
static void limit_memory(rlim_t most)
{
    struct rlimit limit = {(rlim_t)memory_limit, most};

    if (memory_limit > 0 && !AGENT_IS_SANITIZED && limit.rlim_cur < most) {
        setrlimit(RLIMIT_DATA, &limit);
    }
}

/* The program is the leader of a process group, so that all of it can be
 * killed, and has no descriptor of this process: one of a terminal could be
 * read from. */
static int spawn(program_t *program, const char *directory,
                 const char *const *argv, int output, int errors)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    struct rlimit own;
    sigset_t none;
    int error;

    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    if (directory != NULL) {
        posix_spawn_file_actions_addchdir_np(&actions, directory);
    }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                     O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    getrlimit(RLIMIT_DATA, &own);
    limit_memory(own.rlim_max);
    error = posix_spawnp(&program->pid, argv[0], &actions, &attributes,
                         (char *const *)(const void *)argv, environ);
    setrlimit(RLIMIT_DATA, &own);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static void close_pipe(int *ends)
{
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0) {
            close(ends[i]);
        }
    }
}

/* Only the reading end, which this process keeps, does not block. */
static bool open_pipe(int *ends)
{
    return pipe2(ends, O_CLOEXEC) == 0
        && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

/* errors: whether standard error has a pipe of its own. */
static bool start(program_t *program, const char *directory,
                  const char *const *argv, bool errors, bool is_quiet)
{
    int out[2] = {-1, -1};
    int err[2] = {-1, -1};
    bool opened = open_pipe(out) && (!errors || open_pipe(err));
    int error = opened
        ? spawn(program, directory, argv, out[1], errors ? err[1] : out[1])
        : errno;

    if (!opened || error != 0) {
        close_pipe(out);
        close_pipe(err);
        if (!is_quiet) {
            ctl_error("%s could not be started: %s", argv[0], strerror(error));
        }
        return false;
    }
    close(out[1]);
    if (errors) {
        close(err[1]);
    }
    program->name = argv[0];
    program->output = out[0];
    program->errors = err[0];
    program->ended = (int)syscall(SYS_pidfd_open, program->pid, 0);
    return true;
}

/* ---- output ---- */

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

/* Both read once, and return the bytes read; 0: end of file; -1: nothing to
 * read now. */

static ssize_t keep(output_t *output, int fd)
{
    ssize_t count;

    if (output->length + 1 >= output->size) {
        grow(output);
    }
    count = read(fd, output->bytes + output->length,
                 output->size - output->length - 1);
    output->length += count > 0 ? (apr_size_t)count : 0;
    return count;
}

static ssize_t relay(FILE *stream, int fd)
{
    char bytes[4096];
    ssize_t count = read(fd, bytes, sizeof(bytes));

    if (count > 0 && stream != NULL) {
        ctl_relay(stream, bytes, (apr_size_t)count);
    }
    return count;
}

/* output: NULL to log it. errors: NULL to drop them. */
static ssize_t read_pipe(program_t *program, int fd, output_t *output,
                         FILE *errors)
{
    if (fd == program->errors) {
        return relay(errors, fd);
    }
    return output != NULL ? keep(output, fd)
                          : relay(log_file != NULL ? log_file : stdout, fd);
}

/* Reads the rest of the output after the end of the program. A process that it
 * has left may still write, so no more is read than a pipe holds. */
static void read_rest(program_t *program, int fd, output_t *output,
                      FILE *errors)
{
    apr_size_t total = 0;
    ssize_t count;

    while (fd >= 0 && total < PIPE_BYTES
           && (count = read_pipe(program, fd, output, errors)) > 0) {
        total += (apr_size_t)count;
    }
}

/* Reads until the program has ended. Returns why it should not continue; NULL
 * when it has ended by itself. */
static const char *follow(program_t *program, output_t *output, FILE *errors,
                          apr_time_t end)
{
    struct pollfd fds[] = {{.fd = program->output, .events = POLLIN},
                           {.fd = program->errors, .events = POLLIN},
                           {.fd = program->ended, .events = POLLIN}};

    while (fds[2].revents == 0) {
        apr_time_t left = end - apr_time_now();
        struct timespec timeout = {.tv_sec = apr_time_sec(left) + 1};
        sigset_t none;

        sigemptyset(&none);
        if (ending != 0) {
            return "was interrupted";
        }
        if (left <= 0) {
            return "took too long";
        }
        if (output != NULL && output->length > CTL_OUTPUT_MAX) {
            return "wrote more than 64 MB";
        }
        if (ppoll(fds, 3, &timeout, &none) <= 0) {
            continue;
        }
        for (int i = 0; i < 2; i++) {
            if (fds[i].revents != 0
                && read_pipe(program, fds[i].fd, output, errors) == 0) {
                fds[i].fd = -1;
            }
        }
    }
    read_rest(program, program->output, output, errors);
    read_rest(program, program->errors, output, errors);
    return NULL;
}

/* Kills children of this process, as many as a read of their list names.
 * Returns the number of those that it could kill. */
static int kill_children(pid_t *killed)
{
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    char list[CHILDREN_BYTES];
    ssize_t length = fd >= 0 ? read(fd, list, sizeof(list) - 1) : 0;
    char *space;
    int count = 0;

    if (fd >= 0) {
        close(fd);
    }
    list[length > 0 ? length : 0] = '\0';
    /* Each is followed by a space; the last one may be cut. */
    for (char *pid = list; (space = strchr(pid, ' ')) != NULL;
         pid = space + 1) {
        killed[count] = (pid_t)strtol(pid, NULL, 10);
        count += kill(killed[count], SIGKILL) == 0 ? 1 : 0;
    }
    return count;
}

/* Processes that left the group are children of this process (a subreaper), and
 * so are their own children once they are killed. */
void ctl_command_end_adopted(void)
{
    pid_t killed[CHILDREN_BYTES / 2];
    int count;

    while ((count = kill_children(killed)) > 0) {
        for (int i = 0; i < count; i++) {
            while (waitpid(killed[i], NULL, 0) < 0 && errno == EINTR) {
            }
        }
    }
}

/* Kills what it has left, too. Returns the exit status; -1 if a signal ended
 * it. */
static int finish(program_t *program, bool is_quiet)
{
    int status = 0;

    kill(-program->pid, SIGKILL);
    while (waitpid(program->pid, &status, 0) < 0 && errno == EINTR) {
    }
    ctl_command_end_adopted();
    close(program->output);
    close(program->ended);
    if (program->errors >= 0) {
        close(program->errors);
    }
    if (WIFEXITED(status)) {
        return WEXITSTATUS(status);
    }
    if (!is_quiet) {
        ctl_error("%s was ended by signal %d", program->name, WTERMSIG(status));
    }
    return -1;
}

/* directory: NULL for that of this process. */
static int execute(const char *directory, const char *const *argv,
                   output_t *output, apr_time_t end, bool is_quiet)
{
    program_t program;
    const char *problem;
    int status = -1;

    block_signals(SIG_BLOCK);
    if (ending == 0
        && start(&program, directory, argv, output != NULL, is_quiet)) {
        problem = program.ended < 0
            ? "cannot be waited for: pidfd_open(2) needs Linux 5.3"
            : follow(&program, output, is_quiet ? NULL : stderr, end);
        status = finish(&program, is_quiet || problem != NULL);
        if (problem != NULL) {
            status = -1;
            if (!is_quiet) {
                ctl_error("%s %s", argv[0], problem);
            }
        }
    }
    block_signals(SIG_UNBLOCK);
    return status;
}

/* ---- the log ---- */

bool ctl_command_open_log(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                  0644);

    log_file = fd >= 0 ? fdopen(fd, "w+") : NULL;
    return log_file != NULL;
}

/* Prints the log from there on. A program of the application can write to it,
 * so that control characters are replaced once more. */
static void print_log(long start)
{
    char bytes[4096];
    size_t count;

    if (fseek(log_file, start, SEEK_SET) != 0) {
        return;
    }
    while ((count = fread(bytes, 1, sizeof(bytes), log_file)) > 0) {
        ctl_relay(stdout, bytes, count);
    }
    fseek(log_file, 0, SEEK_END);
}

int ctl_command_run_in(const char *directory, const char *const *argv)
{
    long start = log_file != NULL ? ftell(log_file) : -1;
    int status = execute(directory, argv, NULL, APR_INT64_MAX, false);

    if (status != 0 && start >= 0 && ending == 0) {
        print_log(start);
    }
    return status;
}

int ctl_command_run(const char *const *argv)
{
    return ctl_command_run_in(NULL, argv);
}

int ctl_command_read(char **output, const char *const *argv, int timeout_sec,
                     bool is_quiet, apr_pool_t *pool)
{
    output_t text = {.pool = pool};
    int status = execute(NULL, argv, &text,
                         apr_time_now() + apr_time_from_sec(timeout_sec),
                         is_quiet);

    *output = apr_pstrdup(pool, "");
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the spawner's fork to the runner's exec; see spawner_private.h. The
 * runner inherits five descriptors, three variables and those of its pool,
 * nothing else.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "spawner_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "../../core/sanitizer.h"
#include "process.h"

/* Above every descriptor of the runner, so that moving them down is safe. */
#define SAFE_FD 64

/* Writes to the runner's log pipe, which the supervisor reads. */
static void give_up(const char *what)
{
    char text[256];
    int length = snprintf(text, sizeof(text), "cannot start: %s: %s\n", what,
                          strerror(errno));

    if (write(2, text, (size_t)length) < 0) {
        _exit(126);
    }
    _exit(127);
}

/* A copy of the program's descriptor, at SAFE_FD or above. A script's has
 * an offset of its own: some interpreters read the descriptor that their path
 * names, and other processes share the offset of runner_fd. */
static int copy_program(int runner_fd, bool is_script)
{
    char path[32];
    int own;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", runner_fd);
    own = is_script ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    return fcntl(own >= 0 ? own : runner_fd, F_DUPFD_CLOEXEC, SAFE_FD);
}

/* Moves log to 1 and 2, in to 3, out to 4, the program to 5; closes all others.
 * Returns the program's descriptor. */
static int arrange_fds(int runner_fd, const int fds[AGENT_SPAWNER_FDS])
{
    int flags = fcntl(runner_fd, F_GETFD);
    int high[AGENT_SPAWNER_FDS];
    int program = copy_program(runner_fd, (flags & FD_CLOEXEC) == 0);

    for (int i = 0; i < AGENT_SPAWNER_FDS; i++) {
        high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, SAFE_FD);
    }
    dup2(high[AGENT_SPAWNER_LOG], 1);
    dup2(high[AGENT_SPAWNER_LOG], 2);
    dup2(high[AGENT_SPAWNER_IN], 3);
    dup2(high[AGENT_SPAWNER_OUT], 4);
    if (dup2(program, 5) != 5) {
        give_up("descriptors");
    }
    /* The others include httpd's listeners and logs. */
    if (!agent_process_close_range(6, UINT_MAX)) {
        give_up("closing descriptors");
    }
    /* dup2() clears close-on-exec, which only a script goes without. */
    fcntl(5, F_SETFD, flags);
    return 5;
}

/*
 * RLIMIT_DATA counts private writable memory. RLIMIT_AS would count reserved
 * addresses too: Node does not start with it.
 */
static void limit_memory(apr_int64_t bytes)
{
    const struct rlimit data = {(rlim_t)bytes, (rlim_t)bytes};

    if (bytes > 0 && !AGENT_IS_SANITIZED
        && setrlimit(RLIMIT_DATA, &data) != 0) {
        give_up("memory limit");
    }
}

/* Sets both limits; without privileges at most the present one. */
static void limit_count(int resource, int count, const char *what)
{
    struct rlimit limit;

    if (count <= 0) {
        return;
    }
    if (getrlimit(resource, &limit) != 0) {
        give_up(what);
    }
    if (geteuid() == 0 || (rlim_t)count < limit.rlim_max) {
        limit.rlim_max = (rlim_t)count;
    }
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(resource, &limit) != 0) {
        give_up(what);
    }
}

static void drop_rights(const agent_spawn_params_t *params)
{
    const struct rlimit no_core = {0, 0};
    bool own = params->pool->uid != (uid_t)-1;
    apr_status_t rv = agent_process_become(
        own ? params->pool->uid : params->uid,
        own ? params->pool->gid : params->gid);

    if (rv != APR_SUCCESS) {
        errno = APR_TO_OS_ERROR(rv);
        give_up("user and group");
    }
    setrlimit(RLIMIT_CORE, &no_core);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        give_up("no_new_privs");
    }
}

typedef struct environment_t {
    char zone[128];
    /* PATH, LANG, TZ and NULL besides those of the pool. */
    char *variables[AGENT_POOL_ENVIRONMENT_MAX + 4];
} environment_t;

static void fill_environment(environment_t *out, const char *const *own)
{
    const char *tz = getenv("TZ");
    int count = 0;

    out->variables[count++] = "PATH=/usr/local/bin:/usr/bin:/bin";
    out->variables[count++] = "LANG=C.UTF-8";
    if (tz != NULL) {
        snprintf(out->zone, sizeof(out->zone), "TZ=%s", tz);
        out->variables[count++] = out->zone;
    }
    for (int i = 0;
         own != NULL && own[i] != NULL && i < AGENT_POOL_ENVIRONMENT_MAX; i++) {
        out->variables[count++] = (char *)own[i];
    }
    out->variables[count] = NULL;
}

void agent_spawner_exec(const agent_spawn_params_t *params,
                        const int fds[AGENT_SPAWNER_FDS])
{
    static char *const no_arguments[] = {"agent-runner", NULL};
    const agent_pool_config_t *pool = params->pool;
    environment_t environment;
    int program;

    fill_environment(&environment, pool->environment);
    setsid();
    program = arrange_fds(params->program, fds);
    agent_process_reset_signals();
    signal(SIGPIPE, SIG_DFL);
    limit_count(RLIMIT_NOFILE, pool->files, "limit of files");
    agent_process_set_mark(params->id);
    drop_rights(params);
    limit_count(RLIMIT_NPROC, pool->processes, "limit of processes");
    limit_memory(pool->memory);
    if (chdir(pool->directory != NULL ? pool->directory : "/") != 0) {
        give_up("directory");
    }
    /* After the change of user, which clears this setting. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != params->parent) {
        _exit(125);
    }
    fexecve(program,
            pool->arguments != NULL ? (char *const *)pool->arguments
                                    : no_arguments,
            environment.variables);
    give_up("program");
    _exit(127);
}

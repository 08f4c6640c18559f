/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the spawner's fork to the runner's exec; see spawner_private.h. The
 * runner inherits five descriptors and three variables, nothing else.
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

/* Moves log to 1 and 2, in to 3, out to 4, the program to 5; closes all others.
 * Returns the program's descriptor. */
static int arrange_fds(int runner_fd, const int fds[AGENT_SPAWNER_FDS])
{
    int flags = fcntl(runner_fd, F_GETFD);
    int high[AGENT_SPAWNER_FDS];
    int program = fcntl(runner_fd, F_DUPFD_CLOEXEC, SAFE_FD);

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

    if (bytes > 0 && !AGENT_PROCESS_IS_SANITIZED
        && setrlimit(RLIMIT_DATA, &data) != 0) {
        give_up("memory limit");
    }
}

static void drop_rights(const agent_supervisor_config_t *config)
{
    const struct rlimit no_core = {0, 0};
    bool own = config->runner_uid != (uid_t)-1;
    apr_status_t rv = agent_process_become(
        own ? config->runner_uid : config->uid,
        own ? config->runner_gid : config->gid);

    if (rv != APR_SUCCESS) {
        errno = APR_TO_OS_ERROR(rv);
        give_up("user and group");
    }
    setrlimit(RLIMIT_CORE, &no_core);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        give_up("no_new_privs");
    }
}

void agent_spawner_exec(int runner_fd, const int fds[AGENT_SPAWNER_FDS],
                        const agent_supervisor_config_t *config, pid_t parent)
{
    char zone[128];
    const char *tz = getenv("TZ");
    char *const argv[] = {"agent-runner", NULL};
    char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8",
                         tz != NULL ? zone : NULL, NULL};
    int program;

    snprintf(zone, sizeof(zone), "TZ=%s", tz != NULL ? tz : "");
    setsid();
    program = arrange_fds(runner_fd, fds);
    agent_process_reset_signals();
    signal(SIGPIPE, SIG_DFL);
    drop_rights(config);
    limit_memory(config->runner_memory);
    if (chdir("/") != 0) {
        give_up("directory /");
    }
    /* After the change of user, which clears this setting. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(125);
    }
    fexecve(program, argv, env);
    give_up("program");
    _exit(127);
}

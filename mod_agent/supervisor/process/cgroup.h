/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cgroups (v2) of pools: children of a directory that is delegated to this
 * server. Each limits the processes of a pool together, and has the name
 * agent-PID-POOL-DEPLOYMENT, PID being the spawner's. Linux only.
 */
#ifndef AGENT_SUPERVISOR_CGROUP_H
#define AGENT_SUPERVISOR_CGROUP_H

#include <stdbool.h>

#include <apr_errno.h>

#include "../../core/deployment.h"
#include "../base/pool_config.h"

/* agent-, two numbers with their dashes, a deployment with NUL. */
#define AGENT_CGROUP_NAME_SIZE (6 + 2 * 12 + AGENT_DEPLOYMENT_SIZE)

/* Opens the directory. *fd: to be closed by the caller. Errors: those of
 * open(); APR_ENOTIMPL when it is not in a cgroup v2 file system. */
apr_status_t agent_cgroup_open(int *fd, const char *directory);

/* Prints the name of the cgroup of a pool. */
void agent_cgroup_print_name(char out[AGENT_CGROUP_NAME_SIZE], pid_t spawner,
                             int pool, const char *deployment);

/*
 * Moves a process into the cgroup of that name below fd, which is made if it is
 * missing, and sets its limits. *failed: the file, or else the action, that
 * failed; the process then stays where it is.
 */
apr_status_t agent_cgroup_enter(const char **failed, int fd, const char *name,
                                const agent_cgroup_limits_t *limits, pid_t pid);

/* Kills the processes in a cgroup and removes it. False: it still has
 * processes, which take a moment to end, or, before Linux 5.14, have started
 * others; call it again. */
bool agent_cgroup_remove(int fd, const char *name);

/* Removes the cgroups below fd of spawners that were killed. One whose
 * processes do not end within 0.2 s remains until the next call. */
void agent_cgroup_remove_stale(int fd);

/* A description of the directory that was expected, and the file, or else the
 * action, that showed that the given one is another; both are constants. */
typedef struct agent_cgroup_problem_t {
    const char *expected;
    const char *failed;
} agent_cgroup_problem_t;

/*
 * Makes sure that pools may have these limits: enables the controllers in the
 * directory, in which no process may be, then makes a cgroup, moves a child
 * process into it and removes both. Waits for the child. *problem: of an error.
 */
apr_status_t agent_cgroup_check(agent_cgroup_problem_t *problem,
                                const char *directory,
                                const agent_cgroup_limits_t *limits);

#endif

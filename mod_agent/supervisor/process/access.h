/* SPDX-License-Identifier: Apache-2.0 */
/* The rights of a user of runners to files, tried out before the start. */
#ifndef AGENT_SUPERVISOR_ACCESS_H
#define AGENT_SUPERVISOR_ACCESS_H

#include <sys/types.h>

#include <apr_errno.h>

/* The files that a pool needs. */
typedef struct agent_access_t {
    /* To enter and to list. */
    const char *directory;
    /* To read; relative to directory, or absolute. */
    const char *file;
    /* To read and to execute, a regular file; absolute. */
    const char *program;
    /* To read, file or directory; absolute. */
    const char *argument;
} agent_access_t;

/*
 * Tries to use all paths with the rights of uid and gid, without supplementary
 * groups, in a child process; (uid_t)-1: with those of this process. *failed:
 * the first path that cannot be used, borrowed from paths, and the result is
 * the reason; NULL: the attempt itself failed.
 */
apr_status_t agent_access_check(const char **failed, uid_t uid, gid_t gid,
                                const agent_access_t *paths);

#endif

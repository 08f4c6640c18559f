/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that agentctl executes, as the user that builds. */
#ifndef AGENT_CTL_COMMAND_H
#define AGENT_CTL_COMMAND_H

#include <stdbool.h>

#include <apr_tables.h>

/* Bytes of output that ctl_command_read() takes. */
#define CTL_OUTPUT_MAX ((apr_size_t)64 * 1024 * 1024)

/* To be called before the others. On SIGINT, SIGTERM and SIGHUP a program that
 * is being executed is killed; no other is started after that. This process
 * adopts all that programs leave, whatever group or session that is in. */
void ctl_command_init(void);

/* Kills all children of this process, and theirs: nothing that a program has
 * left survives in a process that adopts it (PR_SET_CHILD_SUBREAPER). */
void ctl_command_end_adopted(void);

/* Returns the signal that came; 0 for none. */
int ctl_command_signal(void);

/*
 * ctl_command_run(), ctl_command_run_in() and ctl_command_read() look for
 * argv[0] in PATH, unless it has a slash; argv ends with NULL. The program has
 * no descriptor of this process, and control characters in its printed output
 * are replaced. When it has ended, all processes that it has left are killed,
 * and this process must have no other children.
 */

/* Limits the memory of each program that is started from now on, and of each of
 * its processes: bytes that are private and writable (RLIMIT_DATA); 0: not.
 * Under sanitizers it has no effect. */
void ctl_command_limit_memory(apr_int64_t bytes);

/* Creates the log of ctl_command_run() and ctl_command_run_in(), without which
 * they print the output. Returns false if it cannot be created; errno says
 * why. */
bool ctl_command_open_log(const char *path);

/* Executes a program, and writes both its outputs to the log; prints them to
 * standard output if it fails. Returns its exit status; -1, after printing why,
 * if it could not be started or was killed. */
int ctl_command_run(const char *const *argv);

/* The same, in another working directory. */
int ctl_command_run_in(const char *directory, const char *const *argv);

/*
 * Executes a program, and sets *output to its standard output, in pool;
 * standard error is printed to standard error, unless is_quiet. Returns its
 * exit status; -1, after printing why unless is_quiet, if it could not be
 * started, was killed, wrote more than CTL_OUTPUT_MAX, or took longer than
 * timeout_sec.
 */
int ctl_command_read(char **output, const char *const *argv, int timeout_sec,
                     bool is_quiet, apr_pool_t *pool);

/* Returns the paths of all programs of a name that PATH has, in its order, in
 * pool. */
apr_array_header_t *ctl_command_list(const char *name, apr_pool_t *pool);

/* Returns the first of them; NULL: PATH has none. */
const char *ctl_command_find(const char *name, apr_pool_t *pool);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Set-up of a forked process, and the identity of processes of this host over
 * time. Linux only.
 */
#ifndef AGENT_SUPERVISOR_PROCESS_H
#define AGENT_SUPERVISOR_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include <apr_pools.h>

/* Boot id (36) + ':' + inode of the pid name space + NUL. */
#define AGENT_PROCESS_BOOT_SIZE 64

/*
 * Sets all signals to their default action, blocks none, and ignores SIGPIPE: a
 * child of httpd inherits its parent's handlers.
 */
void agent_process_reset_signals(void);

/*
 * Blocks the signals (a list ended by 0) and returns a descriptor from which
 * they are read; -1 on failure.
 */
int agent_process_signal_fd(const int *signals);

/*
 * Closes the descriptors from first to last, with /proc/self/fd where
 * close_range() is missing or not permitted (Linux before 5.9, a seccomp
 * profile). False when neither works.
 */
bool agent_process_close_range(unsigned first, unsigned last);

/*
 * Closes every descriptor but 2 and those in keep (negative ones are skipped);
 * opens /dev/null as 0 and 1. False as agent_process_close_range().
 */
bool agent_process_close_fds(const int *keep, int count);

/*
 * Changes to uid and gid for good, without supplementary groups; (uid_t)-1:
 * changes nothing. APR_SUCCESS also when the process already has that user and
 * may not change its groups.
 */
apr_status_t agent_process_become(uid_t uid, gid_t gid);

/* Opens a file for reading with the rights of uid and gid, for a process that
 * may be root; (uid_t)-1: with its own. It does not wait for a FIFO. This
 * process loses its supplementary groups. -1 and errno on failure. */
int agent_process_open_as(uid_t uid, gid_t gid, const char *path);

/* Sets the name that ps -c and top show; at most 15 characters. */
void agent_process_name(const char *name);

/*
 * Prints an id of this boot of this host, as seen from this pid name space.
 * False when /proc is missing.
 */
bool agent_process_boot_id(char out[AGENT_PROCESS_BOOT_SIZE]);

/* Returns when a process started, in clock ticks since boot (field 22 of
 * /proc/PID/stat); -1: unknown. */
apr_int64_t agent_process_start_time(pid_t pid);

/* Returns the resident memory of a process in bytes; -1: unknown. Needs no
 * privilege, even for a process that is not dumpable. */
apr_int64_t agent_process_resident(pid_t pid);

/* Marks this process, and those that it will start, with an id: as two limits
 * that limit nothing, of which one is lower and one higher for a smaller id.
 * Neither can be raised without privileges, so that no process can take the
 * mark of another id. */
void agent_process_set_mark(apr_uint32_t id);

/* Returns the id with which a process is marked; -1: none, or unknown. Needs no
 * privilege, which prlimit() does for a process of another user. */
apr_int64_t agent_process_mark(pid_t pid);

/* Whether this process may mark those that it starts: not without privileges
 * where its hard limits are lower (limits.conf). */
bool agent_process_can_mark(void);

/* Whether two boot ids are of the same boot of one machine, in any pid name
 * space. */
bool agent_process_same_boot(const char *one, const char *other);

/*
 * Whether the process that registered as (boot, pid, start) has certainly
 * ended. False when that is unknown: then its lease expires.
 */
bool agent_process_is_gone(const char *own_boot, const char *boot, pid_t pid,
                           apr_int64_t start);

#endif

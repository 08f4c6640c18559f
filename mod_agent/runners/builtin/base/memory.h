/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of memory: the process exits with a line in the log, since not all of its
 * libraries survive a failed allocation.
 */
#ifndef AGENT_RUNNER_MEMORY_H
#define AGENT_RUNNER_MEMORY_H

#include <stddef.h>

/* The exit status, EX_OSERR. */
#define RUNNER_MEMORY_EXIT 71

/* Logs the size in bytes of the failed allocation and the memory limit, and
 * exits. */
void runner_memory_run_out(size_t wanted) __attribute__((noreturn));

/* The abort function of apr_pool_create_ex(): exits in the same way. */
int runner_memory_abort(int status);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens when memory runs out: the process ends with a line in the log.
 * Its libraries could not go on: some take NULL for an answer, some do not.
 */
#ifndef AGENT_RUNNER_MEMORY_H
#define AGENT_RUNNER_MEMORY_H

#include <stddef.h>

/* The exit status of a runner whose memory has run out (EX_OSERR). */
#define RUNNER_MEMORY_EXIT 71

/* Writes how much was asked for and what the limit is; ends the process. */
void runner_memory_run_out(size_t wanted) __attribute__((noreturn));

/* For apr_pool_create_ex(). */
int runner_memory_abort(int status);

#endif

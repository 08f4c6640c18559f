/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the C library's allocator keeps of memory that was freed: json-c and
 * libpq take theirs from it. Without a hint it keeps the most that each of its
 * arenas ever had. Does nothing where the C library is not glibc.
 */
#ifndef AGENT_CORE_HEAP_H
#define AGENT_CORE_HEAP_H

#include <apr_pools.h>

/* What is called large here: a text of a request or an answer, in bytes. */
#define AGENT_HEAP_LARGE ((apr_size_t)256 * 1024)

/* Large blocks go back to the system when they are freed. Once, when a process
 * begins. */
void agent_heap_start(void);

/* When pool ends, and what was tied to it from now on is freed, so does all
 * that the allocator keeps: some milliseconds, for a request that took more. */
void agent_heap_trim_after(apr_pool_t *pool);

#endif

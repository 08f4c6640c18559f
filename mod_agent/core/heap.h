/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Returns freed memory to the system. json-c and libpq use glibc's
 * malloc(), which by default keeps the peak of each of its arenas. No effect
 * with other C libraries.
 */
#ifndef AGENT_CORE_HEAP_H
#define AGENT_CORE_HEAP_H

#include <apr_pools.h>

/* Size of a large block in bytes: the text of a request or response. */
#define AGENT_HEAP_LARGE ((apr_size_t)256 * 1024)

/* Makes free() return large blocks to the system. To be called once, when a
 * process starts. */
void agent_heap_start(void);

/* Returns all free memory to the system when pool ends, after the cleanups that
 * are registered later. Takes some milliseconds: for large requests only. */
void agent_heap_trim_after(apr_pool_t *pool);

#endif

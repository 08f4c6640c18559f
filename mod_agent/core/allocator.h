/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools that one thread creates and another one may destroy. The pools of one
 * allocator share its free memory, which is limited.
 */
#ifndef AGENT_CORE_ALLOCATOR_H
#define AGENT_CORE_ALLOCATOR_H

#include <apr_allocator.h>
#include <apr_pools.h>

/* An allocator with a lock of its own, until pool ends. Free memory beyond
 * kept_bytes is returned to the system. */
apr_status_t agent_allocator_create(apr_allocator_t **out,
                                    apr_size_t kept_bytes, apr_pool_t *pool);

/*
 * A pool with an allocator of its own. For what grows while only one thread, or
 * the holder of one lock, uses it: two threads must not be in pools of one
 * allocator at the same time unless that has a lock, and httpd's allocator for
 * a child has none. It ends as a cleanup of parent, so after those that are
 * registered later, or by end_apart. Never NULL.
 */
apr_pool_t *agent_allocator_make_apart(apr_pool_t *parent);
void agent_allocator_end_apart(apr_pool_t *parent, apr_pool_t *pool);

/* A pool without a parent: the caller must destroy it, before the allocator's
 * own pool ends. Never NULL: without memory the process aborts, as httpd does
 * with its own pools. */
apr_pool_t *agent_allocator_make_pool(apr_allocator_t *allocator);

#endif

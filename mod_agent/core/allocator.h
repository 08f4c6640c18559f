/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools that one thread creates and another one may destroy. The pools of one
 * allocator share its free memory, which is limited.
 */
#ifndef AGENT_CORE_ALLOCATOR_H
#define AGENT_CORE_ALLOCATOR_H

#include <apr_allocator.h>
#include <apr_pools.h>

/* Creates an allocator with a lock, which lives as long as pool. Free memory
 * beyond kept_bytes is returned to the system. */
apr_status_t agent_allocator_create(apr_allocator_t **out,
                                    apr_size_t kept_bytes, apr_pool_t *pool);

/*
 * A pool with a private allocator without a lock, for memory that only one
 * thread at a time uses, for example under one mutex. (Pools that share an
 * allocator without a lock, such as httpd's allocator of a child, must not be
 * used by two threads at the same time.) The pool is destroyed by a cleanup of
 * parent, after cleanups that are registered later, or by
 * agent_allocator_end_private(). Never NULL.
 */
apr_pool_t *agent_allocator_make_private(apr_pool_t *parent);
void agent_allocator_end_private(apr_pool_t *parent, apr_pool_t *pool);

/* Creates a pool without a parent; the caller must destroy it before the
 * allocator's own pool ends. allocator NULL: a new one without a lock. Never
 * NULL: without memory the process aborts, as httpd does with its own pools. */
apr_pool_t *agent_allocator_make_pool(apr_allocator_t *allocator);

#endif

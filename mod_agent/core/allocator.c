/* SPDX-License-Identifier: Apache-2.0 */
/* Creates allocators and their pools; see allocator.h. */
#include "allocator.h"

#include <stdlib.h>

#include <apr_thread_mutex.h>

static apr_status_t destroy_allocator(void *allocator)
{
    apr_allocator_destroy(allocator);
    return APR_SUCCESS;
}

apr_status_t agent_allocator_create(apr_allocator_t **out,
                                    apr_size_t kept_bytes, apr_pool_t *pool)
{
    apr_thread_mutex_t *mutex;
    apr_status_t rv = apr_thread_mutex_create(&mutex, APR_THREAD_MUTEX_DEFAULT,
                                              pool);

    if (rv == APR_SUCCESS) {
        rv = apr_allocator_create(out);
    }
    if (rv == APR_SUCCESS) {
        apr_pool_cleanup_register(pool, *out, destroy_allocator,
                                  apr_pool_cleanup_null);
        apr_allocator_mutex_set(*out, mutex);
        apr_allocator_max_free_set(*out, kept_bytes);
    }
    return rv;
}

static int abort_without_memory(int status)
{
    abort();
}

static apr_status_t destroy_pool(void *pool)
{
    apr_pool_destroy(pool);
    return APR_SUCCESS;
}

apr_pool_t *agent_allocator_make_private(apr_pool_t *parent)
{
    apr_pool_t *pool;

    apr_pool_create_unmanaged_ex(&pool, abort_without_memory, NULL);
    apr_pool_cleanup_register(parent, pool, destroy_pool,
                              apr_pool_cleanup_null);
    return pool;
}

void agent_allocator_end_private(apr_pool_t *parent, apr_pool_t *pool)
{
    apr_pool_cleanup_run(parent, pool, destroy_pool);
}

apr_pool_t *agent_allocator_make_pool(apr_allocator_t *allocator)
{
    apr_pool_t *pool;

    apr_pool_create_unmanaged_ex(&pool, abort_without_memory, allocator);
    return pool;
}

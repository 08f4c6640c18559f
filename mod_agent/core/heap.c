/* SPDX-License-Identifier: Apache-2.0 */
/* Returns freed memory to the system; see heap.h. */
#include "heap.h"

#include <malloc.h>

void agent_heap_start(void)
{
#ifdef __GLIBC__
    /* Otherwise each free() of a large block raises the threshold, up to
     * 32 MB. */
    mallopt(M_MMAP_THRESHOLD, (int)AGENT_HEAP_LARGE);
    mallopt(M_TRIM_THRESHOLD, (int)AGENT_HEAP_LARGE);
#endif
}

static apr_status_t trim(void *unused)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    return APR_SUCCESS;
}

void agent_heap_trim_after(apr_pool_t *pool)
{
    apr_pool_cleanup_register(pool, NULL, trim, apr_pool_cleanup_null);
}

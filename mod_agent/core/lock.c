/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks signals while a mutex is locked; see lock.h. */
#include "lock.h"

#include <apr_thread_mutex.h>

#include "child_thread.h"

struct agent_lock_t {
    apr_thread_mutex_t *mutex;
    /* Under mutex: the signal mask of its thread before it took the lock. */
    sigset_t before;
};

/* Set in child_init. */
static bool is_prefork;

void agent_lock_start(bool blocks_signals)
{
    is_prefork = blocks_signals;
}

apr_status_t agent_lock_create(agent_lock_t **out, apr_pool_t *pool)
{
    *out = apr_pcalloc(pool, sizeof(**out));
    return apr_thread_mutex_create(&(*out)->mutex, APR_THREAD_MUTEX_DEFAULT,
                                   pool);
}

void agent_lock_take(agent_lock_t *lock)
{
    sigset_t before;

    if (!is_prefork) {
        apr_thread_mutex_lock(lock->mutex);
        return;
    }
    agent_child_thread_block_signals(&before);
    apr_thread_mutex_lock(lock->mutex);
    lock->before = before;
}

void agent_lock_release(agent_lock_t *lock)
{
    sigset_t before = lock->before;

    apr_thread_mutex_unlock(lock->mutex);
    if (is_prefork) {
        agent_child_thread_restore_signals(&before);
    }
}

apr_allocator_t *agent_lock_choose_allocator(apr_allocator_t *allocator)
{
    return is_prefork ? NULL : allocator;
}

void agent_lock_destroy_pool(apr_pool_t *pool)
{
    sigset_t before;

    if (!is_prefork) {
        apr_pool_destroy(pool);
        return;
    }
    agent_child_thread_block_signals(&before);
    apr_pool_destroy(pool);
    agent_child_thread_restore_signals(&before);
}

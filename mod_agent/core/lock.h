/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes of a child. The prefork MPM ends a child in a signal handler,
 * wherever its thread is interrupted, and the cleanups that run there take
 * locks and join threads that take them. So with that MPM the signals are
 * blocked while a thread holds a lock: otherwise the child would deadlock with
 * itself until it is killed.
 */
#ifndef AGENT_CORE_LOCK_H
#define AGENT_CORE_LOCK_H

#include <stdbool.h>

#include <apr_allocator.h>
#include <apr_pools.h>

typedef struct agent_lock_t agent_lock_t;

/* Called in child_init, before the first lock is taken. blocks_signals: true
 * with the prefork MPM. */
void agent_lock_start(bool blocks_signals);

/* Creates a lock, in pool. Errors: those of apr_thread_mutex_create(). */
apr_status_t agent_lock_create(agent_lock_t **out, apr_pool_t *pool);

/* Several locks of a thread are released in the reverse order. */
void agent_lock_take(agent_lock_t *lock);
void agent_lock_release(agent_lock_t *lock);

/* Returns the allocator for the pools of a thread that serves requests:
 * `allocator`, or with the prefork MPM NULL, which gives each pool a private
 * one, because the mutex of a shared allocator does not block signals. */
apr_allocator_t *agent_lock_choose_allocator(apr_allocator_t *allocator);

/* Destroys a pool whose allocator other threads use too; blocks signals as a
 * lock does. */
void agent_lock_destroy_pool(apr_pool_t *pool);

#endif

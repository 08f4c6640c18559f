/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes of a child. The prefork MPM ends a child within the handler of a
 * signal, whatever its thread is doing. The end of the child takes locks, and
 * waits for threads that do: with that MPM the signals wait while a thread
 * holds one, else the child would wait for itself until it is killed.
 */
#ifndef AGENT_CORE_LOCK_H
#define AGENT_CORE_LOCK_H

#include <stdbool.h>

#include <apr_allocator.h>
#include <apr_pools.h>

typedef struct agent_lock_t agent_lock_t;

/* Called in child_init, before the first lock is taken. holds_signals: with the
 * prefork MPM. */
void agent_lock_start(bool holds_signals);

/* Creates a lock, in pool. Errors: those of apr_thread_mutex_create(). */
apr_status_t agent_lock_create(agent_lock_t **out, apr_pool_t *pool);

/* Several locks of a thread are released in the reverse order. */
void agent_lock_take(agent_lock_t *lock);
void agent_lock_release(agent_lock_t *lock);

/* The allocator for the pools of a thread that serves requests: this one, whose
 * mutex holds no signals; with the prefork MPM NULL, for one of their own. */
apr_allocator_t *agent_lock_choose_allocator(apr_allocator_t *allocator);

/* Destroys a pool whose allocator other threads use too, as under a lock. */
void agent_lock_destroy_pool(apr_pool_t *pool);

#endif

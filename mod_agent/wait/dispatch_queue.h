/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of woken waiters. Waiters with the same key (a run or a thread)
 * share one queue; the queues are served in rotation, so that many waiters of
 * one run do not delay those of another. All functions are O(1) and called with
 * the registry's lock held.
 */
#ifndef AGENT_WAIT_DISPATCH_QUEUE_H
#define AGENT_WAIT_DISPATCH_QUEUE_H

#include "state.h"

/* Initializes the queue. tables: a pool that only its hash uses. */
void agent_dispatch_queue_init(agent_dispatch_t *dispatch, apr_pool_t *tables);

/* Adds a waiter at the end of the queue of its key. */
void agent_dispatch_queue_add_locked(agent_waiter_t *waiter);

/* Removes a waiter from any position; no effect when it is not queued. */
void agent_dispatch_queue_remove_locked(agent_waiter_t *waiter);

/* Returns the waiter to serve next, which stays queued; NULL if the queue is
 * empty. */
agent_waiter_t *agent_dispatch_queue_first_locked(
    const agent_dispatch_t *dispatch);

#endif

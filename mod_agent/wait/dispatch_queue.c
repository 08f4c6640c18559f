/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of woken waiters.
 *
 * dispatch->queue has the first waiter of each key, and this one has the queue
 * of the others of its key. When the first waiter is removed, the next one of
 * its key replaces it, at the end of the rotation.
 */
#include "dispatch_queue.h"

void agent_dispatch_queue_init(agent_dispatch_t *dispatch, apr_pool_t *tables)
{
    APR_RING_INIT(&dispatch->queue, agent_waiter_t, queue);
    dispatch->key_queues = apr_hash_make(tables);
}

static void start_key_queue_locked(agent_dispatch_t *dispatch,
                                   agent_waiter_t *waiter)
{
    APR_RING_INIT(&waiter->key_queue, agent_waiter_t, queue);
    APR_RING_INSERT_TAIL(&dispatch->queue, waiter, agent_waiter_t, queue);
    apr_hash_set(dispatch->key_queues, waiter->queue_key, APR_HASH_KEY_STRING,
                 waiter);
}

void agent_dispatch_queue_add_locked(agent_waiter_t *waiter)
{
    agent_dispatch_t *dispatch = &waiter->registry->dispatch;
    agent_waiter_t *first = apr_hash_get(
        dispatch->key_queues, waiter->queue_key, APR_HASH_KEY_STRING);

    waiter->is_queued = true;
    if (first == NULL) {
        start_key_queue_locked(dispatch, waiter);
        return;
    }
    APR_RING_INSERT_TAIL(&first->key_queue, waiter, agent_waiter_t, queue);
}

static void pass_key_queue_locked(agent_dispatch_t *dispatch,
                                  agent_waiter_t *first)
{
    agent_waiter_t *next = APR_RING_FIRST(&first->key_queue);

    /* The hash borrows its key from the first waiter of the queue. */
    apr_hash_set(dispatch->key_queues, first->queue_key, APR_HASH_KEY_STRING,
                 NULL);
    if (next != APR_RING_SENTINEL(&first->key_queue, agent_waiter_t, queue)) {
        APR_RING_REMOVE(next, queue);
        start_key_queue_locked(dispatch, next);
        APR_RING_CONCAT(&next->key_queue, &first->key_queue, agent_waiter_t,
                        queue);
    }
}

void agent_dispatch_queue_remove_locked(agent_waiter_t *waiter)
{
    agent_dispatch_t *dispatch = &waiter->registry->dispatch;

    if (!waiter->is_queued) {
        return;
    }
    waiter->is_queued = false;
    APR_RING_REMOVE(waiter, queue);
    if (apr_hash_get(dispatch->key_queues, waiter->queue_key,
                     APR_HASH_KEY_STRING)
        == waiter) {
        pass_key_queue_locked(dispatch, waiter);
    }
}

agent_waiter_t *agent_dispatch_queue_first_locked(
    const agent_dispatch_t *dispatch)
{
    return APR_RING_EMPTY(&dispatch->queue, agent_waiter_t, queue)
        ? NULL
        : APR_RING_FIRST(&dispatch->queue);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of woken waiters; see queue.h.
 *
 * The first waiter of each line is in waits->woken; the others of its line hang
 * on it. The one that takes its place goes to the end of the rotation.
 */
#include "dispatch_queue.h"

static void lead_line_locked(agent_waiter_t *waiter)
{
    agent_waits_t *waits = waiter->waits;

    APR_RING_INIT(&waiter->line, agent_waiter_t, queue);
    APR_RING_INSERT_TAIL(&waits->woken, waiter, agent_waiter_t, queue);
    apr_hash_set(waits->lines, waiter->entry.key, APR_HASH_KEY_STRING, waiter);
}

void agent_wait_queue_add_locked(agent_waiter_t *waiter)
{
    agent_waiter_t *first = apr_hash_get(
        waiter->waits->lines, waiter->entry.key, APR_HASH_KEY_STRING);

    waiter->is_queued = true;
    if (first == NULL) {
        lead_line_locked(waiter);
        return;
    }
    APR_RING_INSERT_TAIL(&first->line, waiter, agent_waiter_t, queue);
}

static void hand_line_on_locked(agent_waiter_t *first)
{
    agent_waiter_t *next = APR_RING_FIRST(&first->line);

    /* The key of the line is the text of its first waiter. */
    apr_hash_set(first->waits->lines, first->entry.key, APR_HASH_KEY_STRING,
                 NULL);
    if (next != APR_RING_SENTINEL(&first->line, agent_waiter_t, queue)) {
        APR_RING_REMOVE(next, queue);
        lead_line_locked(next);
        APR_RING_CONCAT(&next->line, &first->line, agent_waiter_t, queue);
    }
}

void agent_wait_queue_remove_locked(agent_waiter_t *waiter)
{
    if (!waiter->is_queued) {
        return;
    }
    waiter->is_queued = false;
    APR_RING_REMOVE(waiter, queue);
    if (apr_hash_get(waiter->waits->lines, waiter->entry.key,
                     APR_HASH_KEY_STRING)
        == waiter) {
        hand_line_on_locked(waiter);
    }
}

agent_waiter_t *agent_wait_queue_first_locked(const agent_waits_t *waits)
{
    return APR_RING_EMPTY(&waits->woken, agent_waiter_t, queue)
        ? NULL
        : APR_RING_FIRST(&waits->woken);
}

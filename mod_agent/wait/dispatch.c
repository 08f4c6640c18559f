/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who of the woken waiters may ask for a thread; see turns.h.
 *
 * Parked waiters that are woken queue (queue.c), as do those whose first turn
 * finds no room, and few of them are dispatched at a time. A turn takes as long
 * as the largest answer, and while no thread is idle, httpd accepts nobody, and
 * closes connections that are kept for their next request, also with that
 * request on its way. A turn that ends dispatches the next waiter. A waiter
 * that blocks has its thread and does not queue.
 */
#include "dispatch.h"

#include <sys/eventfd.h>

#include "dispatch_queue.h"

static void signal_waiter(const agent_waiter_t *waiter)
{
    (void)!eventfd_write(waiter->wake_fd, 1);
}

/* Idle threads, less those that dispatched waiters are about to take. */
static int count_idle_locked(const agent_waits_t *waits)
{
    const agent_wait_threads_t *threads = &waits->threads;

    return threads->count_idle(threads->baton) - waits->turns_pending;
}

/* While PostgreSQL is lost, turns that find nothing get no more than needed. */
static bool may_dispatch_locked(const agent_waits_t *waits)
{
    const agent_wait_threads_t *threads = &waits->threads;

    return waits->turns_out < threads->least
        || (waits->turns_out < threads->most && waits->hearing
            && count_idle_locked(waits) > threads->reserve);
}

static void dispatch_locked(agent_waits_t *waits)
{
    agent_waiter_t *waiter;

    while ((waiter = agent_wait_queue_first_locked(waits)) != NULL
           && may_dispatch_locked(waits)) {
        agent_wait_queue_remove_locked(waiter);
        waiter->is_out = true;
        waiter->is_pending = true;
        waits->turns_out++;
        waits->turns_pending++;
        signal_waiter(waiter);
    }
}

static void enqueue_locked(agent_waiter_t *waiter)
{
    waiter->rests = false;
    agent_wait_queue_add_locked(waiter);
    dispatch_locked(waiter->waits);
}

/* A waiter in the midst of its turn takes its reasons when that has ended. */
void agent_wait_wake_locked(agent_waiter_t *waiter, agent_wait_t reason)
{
    bool is_first = waiter->reasons == 0;

    waiter->reasons |= 1U << reason;
    if (!waiter->entry.parked) {
        if (is_first) {
            signal_waiter(waiter);
        }
    }
    else if (waiter->rests) {
        enqueue_locked(waiter);
    }
}

void agent_wait_wake_all_locked(agent_waits_t *waits, agent_wait_t reason)
{
    agent_waiter_t *waiter;

    APR_RING_FOREACH(waiter, &waits->by_heartbeat, agent_waiter_t, link)
    {
        agent_wait_wake_locked(waiter, reason);
    }
}

bool agent_wait_keep_thread_locked(agent_waiter_t *waiter)
{
    agent_waits_t *waits = waiter->waits;

    /* Its thread is for whoever was woken before it. */
    if (agent_wait_queue_first_locked(waits) != NULL
        || !may_dispatch_locked(waits)) {
        return false;
    }
    waiter->is_out = true;
    waits->turns_out++;
    return true;
}

bool agent_wait_rest_locked(agent_waiter_t *waiter)
{
    waiter->rests = true;
    if (waiter->reasons != 0) {
        if (agent_wait_keep_thread_locked(waiter)) {
            waiter->rests = false;
            return false;
        }
        enqueue_locked(waiter);
    }
    return true;
}

void agent_wait_begin_turn_locked(agent_waiter_t *waiter)
{
    waiter->rests = false;
    agent_wait_queue_remove_locked(waiter);
    if (waiter->is_pending) {
        waiter->is_pending = false;
        waiter->waits->turns_pending--;
    }
}

void agent_wait_end_turn_locked(agent_waiter_t *waiter)
{
    agent_wait_begin_turn_locked(waiter);
    if (waiter->is_out) {
        waiter->is_out = false;
        waiter->waits->turns_out--;
    }
    dispatch_locked(waiter->waits);
}

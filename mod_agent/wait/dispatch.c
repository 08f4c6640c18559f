/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakes waiters and dispatches the parked ones to threads.
 *
 * Woken parked waiters queue (dispatch_queue.c), and so do new ones while the
 * limit is reached; the end of a turn dispatches the next. The limit keeps
 * threads free for other requests: a turn takes as long as the largest
 * response, and httpd without an idle thread accepts no connection and
 * closes keep-alive connections, even with a request in flight. A waiter that
 * blocks has its own thread and does not queue.
 */
#include "dispatch.h"

#include <sys/eventfd.h>

#include "dispatch_queue.h"

static void signal_waiter(const agent_waiter_t *waiter)
{
    (void)!eventfd_write(waiter->wake_fd, 1);
}

/* Without the idle threads that dispatched waiters are about to take. */
static int count_idle_locked(const agent_dispatch_t *dispatch)
{
    const agent_waiter_threads_t *threads = &dispatch->threads;

    return threads->count_idle(threads->baton) - dispatch->turns_pending;
}

/* While PostgreSQL is unreachable turns are useless: they get the minimum. */
static bool may_dispatch_locked(const agent_waiter_registry_t *registry)
{
    const agent_dispatch_t *dispatch = &registry->dispatch;
    const agent_waiter_threads_t *threads = &dispatch->threads;

    return dispatch->turns < threads->least
        || (dispatch->turns < threads->most && registry->is_listening
            && count_idle_locked(dispatch) > threads->reserve);
}

static void dispatch_locked(agent_waiter_registry_t *registry)
{
    agent_dispatch_t *dispatch = &registry->dispatch;
    agent_waiter_t *waiter;

    while ((waiter = agent_dispatch_queue_first_locked(dispatch)) != NULL
           && may_dispatch_locked(registry)) {
        agent_dispatch_queue_remove_locked(waiter);
        waiter->is_dispatched = true;
        waiter->is_pending = true;
        dispatch->turns++;
        dispatch->turns_pending++;
        signal_waiter(waiter);
    }
}

static void enqueue_locked(agent_waiter_t *waiter)
{
    waiter->is_idle = false;
    agent_dispatch_queue_add_locked(waiter);
    dispatch_locked(waiter->registry);
}

void agent_dispatch_wake_locked(agent_waiter_t *waiter,
                                agent_wake_reason_t reason)
{
    bool is_first = waiter->reasons == 0;

    waiter->reasons |= 1U << reason;
    if (!waiter->params.parked) {
        if (is_first) {
            signal_waiter(waiter);
        }
    }
    else if (waiter->is_idle) {
        enqueue_locked(waiter);
    }
}

void agent_dispatch_wake_all_locked(agent_waiter_registry_t *registry,
                                    agent_wake_reason_t reason)
{
    agent_waiter_t *waiter;

    APR_RING_FOREACH(waiter, &registry->table.by_heartbeat, agent_waiter_t,
                     link)
    {
        agent_dispatch_wake_locked(waiter, reason);
    }
}

bool agent_dispatch_keep_thread_locked(agent_waiter_t *waiter)
{
    agent_waiter_registry_t *registry = waiter->registry;

    if (agent_dispatch_queue_first_locked(&registry->dispatch) != NULL
        || !may_dispatch_locked(registry)) {
        return false;
    }
    waiter->is_dispatched = true;
    registry->dispatch.turns++;
    return true;
}

bool agent_dispatch_idle_locked(agent_waiter_t *waiter)
{
    waiter->is_idle = true;
    if (waiter->reasons != 0) {
        if (agent_dispatch_keep_thread_locked(waiter)) {
            waiter->is_idle = false;
            return false;
        }
        enqueue_locked(waiter);
    }
    return true;
}

void agent_dispatch_begin_turn_locked(agent_waiter_t *waiter)
{
    waiter->is_idle = false;
    agent_dispatch_queue_remove_locked(waiter);
    if (waiter->is_pending) {
        waiter->is_pending = false;
        waiter->registry->dispatch.turns_pending--;
    }
}

void agent_dispatch_end_turn_locked(agent_waiter_t *waiter)
{
    agent_dispatch_begin_turn_locked(waiter);
    if (waiter->is_dispatched) {
        waiter->is_dispatched = false;
        waiter->registry->dispatch.turns--;
    }
    dispatch_locked(waiter->registry);
}

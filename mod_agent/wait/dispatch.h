/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakes waiters and dispatches the parked ones to threads, a few at a time. All
 * functions are called with the registry's lock held.
 */
#ifndef AGENT_WAIT_DISPATCH_H
#define AGENT_WAIT_DISPATCH_H

#include "state.h"

/* Adds a reason for a turn. An idle waiter is queued; one that is taking a turn
 * finds the reason after it. */
void agent_dispatch_wake_locked(agent_waiter_t *waiter,
                                agent_wake_reason_t reason);
void agent_dispatch_wake_all_locked(agent_waiter_registry_t *registry,
                                    agent_wake_reason_t reason);

/* Whether the waiter may take a turn on the thread it has: within the limit,
 * and no other waiter is queued. If so, it counts as dispatched. */
bool agent_dispatch_keep_thread_locked(agent_waiter_t *waiter);

/* Makes the waiter idle, which frees its thread. False: it has a reason for
 * another turn and continues on this thread. */
bool agent_dispatch_idle_locked(agent_waiter_t *waiter);

/* Begin and end a turn. The end, also without a begin, dispatches the next
 * waiter. */
void agent_dispatch_begin_turn_locked(agent_waiter_t *waiter);
void agent_dispatch_end_turn_locked(agent_waiter_t *waiter);

#endif

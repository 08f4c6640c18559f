/* SPDX-License-Identifier: Apache-2.0 */
/* Who of the woken waiters gets a thread; see turns.c. Each function is called
 * with the lock of the waits held. */
#ifndef AGENT_WAIT_DISPATCH_H
#define AGENT_WAIT_DISPATCH_H

#include "state.h"

/* Adds a reason for the waiter to take a turn, and queues it if it is idle. */
void agent_wait_wake_locked(agent_waiter_t *waiter, agent_wait_t reason);
void agent_wait_wake_all_locked(agent_waits_t *waits, agent_wait_t reason);

/* Whether the waiter may take a turn with the thread that it has: there is room
 * for one more, and nobody is queued. It is out then. */
bool agent_wait_keep_thread_locked(agent_waiter_t *waiter);

/*
 * The waiter gives its thread back until it is dispatched. False: it has a
 * reason for a turn, and goes on with this thread.
 */
bool agent_wait_rest_locked(agent_waiter_t *waiter);

/* A turn takes its reasons; it has ended, or there will be none. The end
 * dispatches the next waiter. */
void agent_wait_begin_turn_locked(agent_waiter_t *waiter);
void agent_wait_end_turn_locked(agent_waiter_t *waiter);

#endif

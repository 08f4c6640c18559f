/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of woken waiters: those of one key (a run or a thread) stand in one
 * line, and the lines are served in rotation, so that many waiters of one run
 * do not hold up another's. Each function is O(1), and called with the lock of
 * the waits held.
 */
#ifndef AGENT_WAIT_DISPATCH_QUEUE_H
#define AGENT_WAIT_DISPATCH_QUEUE_H

#include "state.h"

void agent_wait_queue_add_locked(agent_waiter_t *waiter);
/* Wherever it stands; nothing when it is not queued. */
void agent_wait_queue_remove_locked(agent_waiter_t *waiter);

/* Whose turn it is, still queued; NULL = nobody is queued. */
agent_waiter_t *agent_wait_queue_first_locked(const agent_waits_t *waits);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timed actions of the watch thread: heartbeats, polls while there is
 * no LISTEN connection, and the end of the child. All functions are called with
 * the registry's lock held.
 */
#ifndef AGENT_WAIT_TIMER_H
#define AGENT_WAIT_TIMER_H

#include "state.h"

/* Returns when the next action is due; 0 if none is. */
apr_time_t agent_timer_due_locked(const agent_waiter_registry_t *registry);

/* Performs the actions that are due. */
void agent_timer_run_locked(agent_waiter_registry_t *registry, apr_time_t now);

/* Refuses new waiters and wakes streams; the other waiters are woken after
 * grace. */
void agent_timer_stop_locked(agent_waiter_registry_t *registry,
                             apr_interval_time_t grace);

#endif

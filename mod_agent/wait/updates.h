/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delivers new events to subscribed waiters: one query for all runs that have
 * changed, instead of one query for each waiter. The same query finds runs that
 * have ended without a notification.
 *
 * It is an optimization: whatever it cannot deliver is left to the waiter's own
 * query, so a failure here loses no event.
 */
#ifndef AGENT_WAIT_UPDATES_H
#define AGENT_WAIT_UPDATES_H

#include "state.h"

void agent_updates_init(agent_updates_t *updates, agent_db_pool_t *db,
                        apr_pool_t *pool);

/* Forgets the events delivered for the next turn. */
void agent_updates_drop_locked(agent_waiter_t *waiter);

/* The next query includes the run of this waiter. False: it is not subscribed
 * and has to query for itself. */
bool agent_updates_request_locked(agent_waiter_t *waiter);

/* In the listen thread: a notification named this run or thread. Waiters that
 * are not subscribed to its events are woken. */
void agent_updates_note_change(agent_waiter_registry_t *registry,
                               const char *key, apr_ssize_t length);

/* In the listen thread: queries what was requested and wakes the waiters. */
void agent_updates_fetch(agent_waiter_registry_t *registry);

#endif

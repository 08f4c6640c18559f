/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delivers new events to subscribed waiters: one query for all runs that have
 * changed, instead of one query for each waiter. The same query finds runs that
 * have ended without a notification.
 *
 * It is an optimization: a waiter's own query finds the events that could not
 * be delivered, so a failure here loses none.
 */
#ifndef AGENT_WAIT_UPDATES_H
#define AGENT_WAIT_UPDATES_H

#include "state.h"

/* Prepares the parameters of the query, in pool. db is borrowed. */
void agent_updates_init(agent_updates_t *updates, agent_db_pool_t *db,
                        apr_pool_t *pool);

/* Drops the events delivered for the next turn. */
void agent_updates_drop_locked(agent_waiter_t *waiter);

/* Includes the run of this waiter in the next query. False: the waiter is not
 * subscribed and has to query itself. */
bool agent_updates_request_locked(agent_waiter_t *waiter);

/* In the listen thread: handles a notification that names this run or thread
 * (length of the key, or APR_HASH_KEY_STRING). Waiters that are not subscribed
 * to its events are woken, those that wait for its end only if it may have
 * ended; the events of the others are requested. */
void agent_updates_notify(agent_waiter_registry_t *registry, const char *key,
                          apr_ssize_t length, bool may_have_ended);

/* In the listen thread: queries what was requested and wakes the waiters. */
void agent_updates_fetch(agent_waiter_registry_t *registry);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API keys that admitted waiting requests. One thread queries the database
 * for all keys whose last check is too old, in one statement, and wakes the
 * requests of invalid ones with AGENT_REASON_KEY_INVALID. The statement may
 * wait seconds for the connection pool and the database, so a second thread,
 * without the database, wakes the requests of keys that expire. Both have a
 * deadline only while a request with a key waits.
 */
#ifndef AGENT_WAIT_API_KEYS_H
#define AGENT_WAIT_API_KEYS_H

#include "state.h"

typedef struct agent_api_keys_t agent_api_keys_t;

/* Creates an empty set, in pool. db: for the statement. tables: a pool that
 * only hashes use. */
agent_api_keys_t *agent_api_keys_make(agent_db_pool_t *db, apr_pool_t *tables,
                                      apr_pool_t *pool);

/* Open and close what agent_api_keys_interrupt() needs. */
apr_status_t agent_api_keys_open(agent_api_keys_t *keys);
void agent_api_keys_close(const agent_api_keys_t *keys);

/* Adds a waiter, unless it has no key. True: the threads must be interrupted,
 * since the key is due before their deadline. The lock is held. */
bool agent_api_keys_add_locked(agent_waiter_t *waiter);

/* Removes a waiter, if it is in the set. The lock is held. */
void agent_api_keys_remove_locked(agent_waiter_t *waiter);

/* Wakes the threads to recompute their deadline. */
void agent_api_keys_interrupt(const agent_api_keys_t *keys);

/* The threads: the first one queries the database, the second one handles keys
 * that expire; data: the registry. */
void *APR_THREAD_FUNC agent_api_keys_run(apr_thread_t *thread, void *data);
void *APR_THREAD_FUNC agent_api_keys_run_expiries(apr_thread_t *thread,
                                                  void *data);

#endif

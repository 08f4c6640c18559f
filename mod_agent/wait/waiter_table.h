/* SPDX-License-Identifier: Apache-2.0 */
/* The table of waiters and its limits. The registry's lock is held in each
 * function but init. */
#ifndef AGENT_WAIT_WAITER_TABLE_H
#define AGENT_WAIT_WAITER_TABLE_H

#include "state.h"

/* Initializes the table. tables: a pool that only its hashes use. */
void agent_waiter_table_init(agent_waiter_table_t *table,
                             const agent_waiter_limits_t *limits,
                             apr_pool_t *tables);

/* Whether one more waiter is within the limits; otherwise *refusal is
 * OVERLOADED, ADDRESS_FULL or LIMIT. params: as for agent_waiter_check(). */
bool agent_waiter_table_accepts_locked(agent_error_id_t *refusal,
                                       const agent_waiter_table_t *table,
                                       const agent_waiter_params_t *params);

/* Add and remove a waiter, and count it. It is borrowed until it is removed. */
void agent_waiter_table_add_locked(agent_waiter_table_t *table,
                                   agent_waiter_t *waiter);
void agent_waiter_table_remove_locked(agent_waiter_table_t *table,
                                      agent_waiter_t *waiter);

/* Removes the waiter from by_timeout; no effect if it is not in it. */
void agent_waiter_table_drop_timeout_locked(agent_waiter_t *waiter);

/* Returns the first waiter for a key, or NULL; the others follow by next.
 * length: of the key, or APR_HASH_KEY_STRING. */
agent_waiter_t *agent_waiter_table_find_locked(
    const agent_waiter_table_t *table, const char *key, apr_ssize_t length);

/* Returns the waiter whose client is watched by this serial number; NULL when
 * it has been removed. */
agent_waiter_t *agent_waiter_table_find_serial_locked(
    const agent_waiter_table_t *table, apr_uint64_t serial);

#endif

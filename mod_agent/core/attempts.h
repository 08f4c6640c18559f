/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts attempts per client address in a table of fixed size: for example, API
 * keys that were refused after a query, since clients that guess keys must not
 * occupy the database. All functions may be called by any thread; now: a time
 * of the monotonic clock.
 */
#ifndef AGENT_CORE_ATTEMPTS_H
#define AGENT_CORE_ATTEMPTS_H

#include <apr_pools.h>
#include <apr_time.h>

/* Capacity in addresses; when a set (of AGENT_ATTEMPT_WAYS) is full, the entry
 * with the fewest attempts is evicted. */
#define AGENT_ATTEMPT_SIZE 4096
#define AGENT_ATTEMPT_WAYS 8

typedef struct agent_attempts_t agent_attempts_t;

/* Creates an empty table, in pool, that allows an address `limit` attempts
 * within `time` of its first one. */
apr_status_t agent_attempts_create(agent_attempts_t **out, unsigned limit,
                                   apr_interval_time_t time, apr_pool_t *pool);

/* Returns the time until an address may try again; 0: it may now. address: see
 * agent_client_address_number(). */
apr_interval_time_t agent_attempts_wait(agent_attempts_t *attempts,
                                        apr_uint64_t address, apr_time_t now);

/* Counts one attempt of the address. */
void agent_attempts_add(agent_attempts_t *attempts, apr_uint64_t address,
                        apr_time_t now);

#endif

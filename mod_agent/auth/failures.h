/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts keys that were refused after a query, per client address:
 * clients that guess keys must not occupy the database. All functions may be
 * called by any thread; now: of the monotonic clock.
 */
#ifndef AGENT_AUTH_FAILURES_H
#define AGENT_AUTH_FAILURES_H

#include <apr_pools.h>
#include <apr_time.h>

/* Of one address, in AGENT_FAILURE_TIME from the first one on. */
#define AGENT_FAILURE_LIMIT 20
#define AGENT_FAILURE_TIME  apr_time_from_sec(10)
/* Addresses; for another one that with the fewest failures is forgotten, among
 * AGENT_FAILURE_WAYS of them. */
#define AGENT_FAILURE_SIZE 4096
#define AGENT_FAILURE_WAYS 8

typedef struct agent_failures_t agent_failures_t;

/* Creates an empty table, in pool. */
apr_status_t agent_failures_create(agent_failures_t **out, apr_pool_t *pool);

/* Returns the time until keys of an address are tried again; 0: they are tried.
 * address: see agent_client_address_number(). */
apr_interval_time_t agent_failures_wait(agent_failures_t *failures,
                                        apr_uint64_t address, apr_time_t now);

/* Counts one. */
void agent_failures_add(agent_failures_t *failures, apr_uint64_t address,
                        apr_time_t now);

#endif

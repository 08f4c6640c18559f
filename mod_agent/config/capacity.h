/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of one child, derived from the MPM and the system. They are valid from
 * post_config on. */
#ifndef AGENT_CONFIG_CAPACITY_H
#define AGENT_CONFIG_CAPACITY_H

#include "config.h"

/*
 * Returns how many requests may wait: AgentMaxWaiters, or the number of
 * connections that the MPM accepts; never more than the limit of file
 * descriptors allows, since the MPM stops a child without descriptors.
 */
int agent_capacity_waiters(const agent_server_config_t *config);

/* Returns how many requests may wait and hold a thread each. */
int agent_capacity_blocked_waiters(const agent_server_config_t *config);

/* Returns how many requests may wait for the rest of their bodies: half of
 * agent_capacity_waiters(). */
int agent_capacity_body_waiters(const agent_server_config_t *config);

/* Returns how many requests of one client address may wait, where `slots` may
 * wait in all; 0 = unlimited. */
int agent_capacity_waiters_per_address(const agent_server_config_t *config,
                                       int slots);

/* Returns how many children serve requests, not counting those of old
 * generations. */
int agent_capacity_children(void);

/* Returns how many database connections a child may open with a pool of `size`:
 * one for each thread, and the one that listens. */
int agent_capacity_child_connections(int size);

/* Returns how many of the child's `size` database connections the turns of
 * waiting requests may use at the same time: half of them. */
int agent_capacity_turn_connections(int size);

/* Return how many threads may continue parked requests at the same time: always
 * min, and up to max while more than `reserved` threads are idle. connections:
 * as returned by agent_capacity_turn_connections(); more threads would only
 * wait for a connection. */
int agent_capacity_min_turns(int connections);
int agent_capacity_max_turns(int connections);
int agent_capacity_reserved_threads(void);

/* Returns how many threads may serve clients that send their bodies, or read
 * their responses, in parts. */
int agent_capacity_client_threads(void);

/* Returns how many threads may discard bodies of refused requests. */
int agent_capacity_discarding_threads(void);

/* This child in httpd's scoreboard. */
typedef struct agent_capacity_child_t agent_capacity_child_t;

/* Creates the record of this child, in pool; to be called in child_init. */
agent_capacity_child_t *agent_capacity_make_child(apr_pool_t *pool);

/* Returns the number of idle threads; 0 while unknown. baton: an
 * agent_capacity_child_t. Not thread-safe. */
int agent_capacity_idle_threads(void *baton);

/* Returns the bytes that all request bodies may have together: 4 MB for each
 * thread, at least 16 MB. */
apr_int64_t agent_capacity_body_bytes(void);

/* Logs warnings about settings of the MPM and the system that are too small for
 * AgentMaxWaiters. */
void agent_capacity_check(const agent_server_config_t *config,
                          server_rec *server);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of one child, derived from the MPM and the system. They are valid from
 * post_config on. */
#ifndef AGENT_CONFIG_CAPACITY_H
#define AGENT_CONFIG_CAPACITY_H

#include "config.h"

/*
 * Requests that may wait for runs: AgentMaxWaiters, or the number of
 * connections that the MPM accepts; never more than the limit of file
 * descriptors allows, since the MPM stops a child without descriptors.
 */
int agent_capacity_waiters(const agent_server_config_t *config);

/* Requests that may wait for runs and hold a thread each. */
int agent_capacity_blocked_waiters(const agent_server_config_t *config);

/* Requests that may wait for the rest of their bodies: half as many as may wait
 * for runs. */
int agent_capacity_body_waiters(const agent_server_config_t *config);

/* Requests of one client address that may wait, where `slots` may wait in all;
 * 0 = unlimited. */
int agent_capacity_waiters_per_address(const agent_server_config_t *config,
                                       int slots);

/* Threads that parked requests may use at the same time: at least, and at most
 * if many threads are idle. */
int agent_capacity_min_turns(void);
int agent_capacity_max_turns(void);

/* This child in httpd's scoreboard. */
typedef struct agent_capacity_child_t agent_capacity_child_t;

/* Creates it in pool; call it in child_init. */
agent_capacity_child_t *agent_capacity_make_child(apr_pool_t *pool);

/* Returns the number of idle threads; 0 while unknown. baton: an
 * agent_capacity_child_t. Not thread-safe. */
int agent_capacity_idle_threads(void *baton);

/* Bytes of all request bodies together: 4 MB for each thread, at least
 * 16 MB. */
apr_int64_t agent_capacity_body_bytes(void);

/* Logs warnings about settings of the MPM and the system that are too small for
 * AgentMaxWaiters. */
void agent_capacity_check(const agent_server_config_t *config,
                          server_rec *server);

#endif

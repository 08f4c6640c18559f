/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on waiting requests, derived from the MPM and the system. */
#ifndef AGENT_CONFIG_CAPACITY_H
#define AGENT_CONFIG_CAPACITY_H

#include "config.h"

/*
 * Requests that may wait in one child: AgentMaxWaiters, or the number that the
 * MPM has room for; never more than the limit of file descriptors allows, since
 * the MPM stops a child without descriptors. From post_config on.
 */
int agent_capacity_waiters(const agent_server_config_t *config);

/* Waiting requests that may each hold a thread. */
int agent_capacity_blocked(const agent_server_config_t *config);

/* The part of `slots` waiting requests that one client address may have;
 * 0 = unlimited. */
int agent_capacity_per_address(const agent_server_config_t *config, int slots);

/* Threads that parked requests may use for their turns: always, and at most
 * when many are idle. */
int agent_capacity_least_turns(void);
int agent_capacity_most_turns(void);

/* The index of this child in the scoreboard. */
typedef struct agent_capacity_slot_t agent_capacity_slot_t;

/* In pool; in child_init. */
agent_capacity_slot_t *agent_capacity_make_slot(apr_pool_t *pool);

/* Idle threads of this child; 0 while unknown. Not thread-safe. data: an
 * agent_capacity_slot_t. */
int agent_capacity_count_idle(void *data);

/* Requests that may wait for their bodies: half as many. */
int agent_capacity_reading(const agent_server_config_t *config);

/* Memory limit of all request bodies of a child: 4 MB for each thread, at least
 * 16 MB. */
apr_int64_t agent_capacity_body_bytes(void);

/* Warns of settings of the MPM and the system that are too small for
 * AgentMaxWaiters. */
void agent_capacity_check(const agent_server_config_t *config,
                          server_rec *server);

#endif

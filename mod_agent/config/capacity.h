/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests may wait, by what the MPM and the system have room for. */
#ifndef AGENT_CONFIG_CAPACITY_H
#define AGENT_CONFIG_CAPACITY_H

#include "config.h"

/*
 * Requests that one child lets wait: AgentMaxWaiters, or what there is room
 * for. Never more than the file descriptors allow: the MPM takes a process
 * without descriptors out of service. From post_config on.
 */
int agent_capacity_waiters(const agent_server_config_t *config);

/* Those of them that may hold a thread. */
int agent_capacity_blocked(const agent_server_config_t *config);

/* Of so many places, those that one client address may have; 0 = any number. */
int agent_capacity_per_address(const agent_server_config_t *config, int places);

/* Threads of this child that may take turns of requests that wait without one,
 * whatever else it does, and the most that may when many are idle. */
int agent_capacity_least_turns(void);
int agent_capacity_most_turns(void);

/* Where the scoreboard has this child. */
typedef struct agent_capacity_slot_t agent_capacity_slot_t;

/* In pool; in child_init. */
agent_capacity_slot_t *agent_capacity_make_slot(apr_pool_t *pool);

/* Threads of this child that are idle now; 0 while that is not known. Calls
 * must not overlap. data: an agent_capacity_slot_t. */
int agent_capacity_count_idle(void *data);

/* Requests that may wait for their clients besides: half as many. */
int agent_capacity_reading(const agent_server_config_t *config);

/* Bytes that the bodies of one child may have together: 4 MB for each thread,
 * at least 16 MB. */
apr_int64_t agent_capacity_body_bytes(void);

/* Logs what of the MPM's configuration is too small for requests that wait. */
void agent_capacity_check(const agent_server_config_t *config,
                          server_rec *server);

#endif

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

/* Threads that their signs of life may ask for together. */
int agent_capacity_beats(void);

/* Logs what of the MPM's configuration is too small for requests that wait. */
void agent_capacity_check(const agent_server_config_t *config,
                          server_rec *server);

#endif

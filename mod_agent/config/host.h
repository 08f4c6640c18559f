/* SPDX-License-Identifier: Apache-2.0 */
/* Which handlers of the module the (virtual) hosts have. */
#ifndef AGENT_CONFIG_HOST_H
#define AGENT_CONFIG_HOST_H

#include <stdbool.h>

#include "config.h"

/* Finds the hosts with handlers, when the configuration has been read. server:
 * the first one; the result lives as long as pool. */
void agent_host_find_handlers(agent_server_config_t *config,
                              const server_rec *server, apr_pool_t *pool);

/* Whether any host has a handler or a graph. If so, a server with a database
 * has a waiter registry and a supervisor. */
bool agent_host_is_any(const agent_server_config_t *config);

/* Whether the host serves deployments and is not a platform host, so that
 * AgentRegionURL does not apply to its paths. */
bool agent_host_has_deployments_only(const agent_server_config_t *config,
                                     const server_rec *host);

#endif

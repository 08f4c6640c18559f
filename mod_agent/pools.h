/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of runners that httpd.conf declares, for the supervisor. */
#ifndef AGENT_POOLS_H
#define AGENT_POOLS_H

#include "config/config.h"
#include "supervisor/base/supervisor_config.h"

/* Checks the users, cgroups, applications and number of runners of all
 * deployments, as a part of the configuration check. False: something is
 * invalid, which was logged. */
bool agent_pools_check(const agent_server_config_t *config, server_rec *server,
                       apr_pool_t *pool);

/* Sets the pools of the supervisor, whose conninfo is set; warns of users that
 * runners should not have. Borrows from config. Errors: APR_ENOENT for an
 * unknown AgentRunnerUser. */
apr_status_t agent_pools_fill(agent_supervisor_config_t *supervisor,
                              const agent_server_config_t *config,
                              server_rec *server, apr_pool_t *pool);

/* Composes the graphs of each pool for hello, with the keys of their models:
 * only in the supervisor's process. */
void agent_pools_print_graphs(agent_supervisor_config_t *supervisor,
                              const agent_server_config_t *config,
                              apr_pool_t *pool);

#endif

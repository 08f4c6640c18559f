/* SPDX-License-Identifier: Apache-2.0 */
/* Directives with valid values that have no effect, or not the apparent one,
 * because graphs or API keys are missing. */
#ifndef AGENT_CONFIG_UNUSED_DIRECTIVE_H
#define AGENT_CONFIG_UNUSED_DIRECTIVE_H

#include "config.h"

/* A directive that has no effect without graphs. */
typedef struct agent_host_directive_t {
    const server_rec *server;
    const ap_directive_t *directive;
    /* NULL: a directive of runners. */
    const char *deployment;
    /* In <Location> or <Directory>. */
    bool is_in_section;
} agent_host_directive_t;

/* Records a directive for agent_unused_directive_check(). deployment: the value
 * of an AgentDeployment; NULL: a directive of runners. */
void agent_unused_directive_record(cmd_parms *cmd, const char *deployment);

/* Returns the directive of runners with that name that applies to a host: its
 * own last one, or that of the main server; NULL if neither has one. */
const ap_directive_t *agent_unused_directive_find(
    const agent_server_config_t *config, const server_rec *host,
    const char *name);

/* Returns the deployments that the configuration names, each once: texts, in
 * pool. */
const apr_array_header_t *agent_unused_directive_list_deployments(
    const agent_server_config_t *config, apr_pool_t *pool);

/*
 * Once the deployments of graphs are set, warns of
 * - each deployment that is served but has no graph on this server, with all
 *   lines that name it;
 * - each directive of runners in a virtual host without graphs;
 * - deployments of accounts in hosts without AuthType AgentKey, and AuthType
 *   AgentKey without a database.
 */
void agent_unused_directive_check(const agent_server_config_t *config,
                                  server_rec *server, apr_pool_t *pool);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The graphs that httpd.conf declares, by name and all together. */
#ifndef AGENT_CONFIG_GRAPH_H
#define AGENT_CONFIG_GRAPH_H

#include "config.h"

/* The graph of that name, or NULL. */
const agent_graph_t *agent_config_find_graph(
    const agent_server_config_t *config, const char *name);

/* The graph whose system assistant has that (lower case) id, or NULL. */
const agent_graph_t *agent_config_find_assistant(
    const agent_server_config_t *config, const char *assistant_id);

/* All graphs as the `graphs` object of the runner protocol's hello, in pool. */
const char *agent_config_graphs_json(const agent_server_config_t *config,
                                     apr_pool_t *pool);

/* NULL-terminated names of all graphs, in pool. */
const char *const *agent_config_graph_names(const agent_server_config_t *config,
                                            apr_pool_t *pool);

#endif

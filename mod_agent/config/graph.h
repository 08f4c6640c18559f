/* SPDX-License-Identifier: Apache-2.0 */
/* The graphs that httpd.conf declares. */
#ifndef AGENT_CONFIG_GRAPH_H
#define AGENT_CONFIG_GRAPH_H

#include "config.h"

/* Returns the graph of that name, or NULL. */
const agent_graph_t *agent_config_find_graph(
    const agent_server_config_t *config, const char *name);

/* The graph whose system assistant has that (lower case) id, or NULL. */
const agent_graph_t *agent_config_find_assistant(
    const agent_server_config_t *config, const char *assistant_id);

/* Returns all graphs as the object `graphs` of the runner protocol's hello, in
 * pool. It contains the keys of models. */
const char *agent_config_graphs_json(const agent_server_config_t *config,
                                     apr_pool_t *pool);

/* Returns the names of all graphs, NULL-terminated, in pool. */
const char *const *agent_config_graph_names(const agent_server_config_t *config,
                                            apr_pool_t *pool);

#endif

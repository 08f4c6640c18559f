/* SPDX-License-Identifier: Apache-2.0 */
/* The graphs that httpd.conf declares with <AgentGraph> and AgentApplication.
 * Each belongs to the deployment of the host that declares it. */
#ifndef AGENT_CONFIG_GRAPH_H
#define AGENT_CONFIG_GRAPH_H

#include "application.h"
#include "config.h"

/* One tool of a built-in graph. */
typedef struct agent_tool_t {
    const char *name;
    /* Method and URL of an HTTP tool; NULL for a built-in tool. */
    const char *method;
    const char *url;
    const char *description;
    /* JSON text of the arguments' JSON Schema. */
    const char *schema;
} agent_tool_t;

/* <AgentGraph NAME>: a built-in graph and its model; or a graph of an
 * application. */
typedef struct agent_graph_t {
    const char *name;
    /* Name of its deployment; set by agent_graph_assign(). */
    const char *deployment;
    /* The host and the directive, <AgentGraph> or AgentApplication, that
     * declare it. */
    const server_rec *server;
    const ap_directive_t *directive;
    /* UUIDv5 of the name: the graph's system assistant, in any deployment. */
    const char *assistant_id;
    /* Of an application, and what its langgraph.json says of the graph; NULL:
     * a built-in graph, with the members below. */
    const agent_application_t *application;
    const char *path;
    const char *description;
    /* demo, anthropic or openai. */
    const char *provider;
    const char *model;
    const char *url;
    /* Read from AgentModelKeyFile at start; never logged. The only copy. */
    char *key;
    const char *system_prompt;
    int max_steps;
    int max_tokens;
    apr_interval_time_t timeout;
    apr_array_header_t *tools; /* of agent_tool_t * */
} agent_graph_t;

/* The graphs that the same runners execute: the built-in ones of a deployment,
 * or those of one of its applications. */
typedef struct agent_graph_pool_t {
    const char *deployment;
    /* NULL: the built-in ones. */
    const agent_application_t *application;
} agent_graph_pool_t;

/* Makes a graph without a model, in cmd->pool, with the defaults of directives.
 * name: borrowed. */
agent_graph_t *agent_graph_make(const char *name, cmd_parms *cmd);

/* The directive that declares the graph, for messages. */
const char *agent_graph_directive(const agent_graph_t *graph);

/* The graph of that index, from 0 to config->graphs->nelts - 1. */
const agent_graph_t *agent_graph_get(const agent_server_config_t *config,
                                     int i);

/* Sets the deployment of each graph, once all directives are read. Returns an
 * error message, in pool, when a deployment has two graphs or two applications
 * of one name. */
const char *agent_graph_assign(const agent_server_config_t *config,
                               apr_pool_t *pool);

/* Whether the graph is executed by runners of that pool. */
bool agent_graph_is_of(const agent_graph_t *graph,
                       const agent_graph_pool_t *key);

/* Returns all pools that have a graph, each once, in the order of their first
 * graphs; of agent_graph_pool_t, in pool. */
const apr_array_header_t *agent_graph_list_pools(
    const agent_server_config_t *config, apr_pool_t *pool);

/* Whether the deployment has a graph. */
bool agent_graph_has_deployment(const agent_server_config_t *config,
                                const char *deployment);

/* Returns the deployment's graph whose system assistant has that id, in lower
 * case; NULL if there is none. */
const agent_graph_t *agent_graph_find_assistant(
    const agent_server_config_t *config, const char *deployment,
    const char *assistant_id);

/* Returns the names of the deployment's graphs, NULL-terminated, in pool. */
const char *const *agent_graph_list_names(const agent_server_config_t *config,
                                          const char *deployment,
                                          apr_pool_t *pool);

/* Returns the names of a pool's graphs, NULL-terminated, in pool. */
const char *const *agent_graph_list_of_pool(const agent_server_config_t *config,
                                            const agent_graph_pool_t *key,
                                            apr_pool_t *pool);

/* Returns a pool's graphs as the object `graphs` of the runner protocol's
 * hello, in pool. It contains their keys of models. */
const char *agent_graph_print_json(const agent_server_config_t *config,
                                   const agent_graph_pool_t *key,
                                   apr_pool_t *pool);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A built-in graph: its model, tools and limits, as `hello` defines them. */
#ifndef AGENT_RUNNER_GRAPH_H
#define AGENT_RUNNER_GRAPH_H

#include <apr_tables.h>
#include <apr_time.h>
#include <json-c/json.h>

struct runner_provider_t;
struct runner_builtin_t;

typedef struct runner_model_t {
    const struct runner_provider_t *provider;
    /* As in the configuration: "demo", "anthropic:NAME". */
    const char *label;
    const char *name;
    /* Without a slash at its end; NULL for the vendor's own service. */
    const char *url;
    /* NULL: no key is sent. Never logged, never a part of a message. */
    const char *key;
    /* The longest silence of the model. */
    apr_interval_time_t timeout;
    /* 0: the provider's default. */
    int64_t max_tokens;
} runner_model_t;

typedef struct runner_tool_t {
    const char *name;
    const char *description;
    /* JSON schema of the arguments; belongs to the graph's pool. */
    json_object *schema;
    /* NULL for a tool over HTTP. */
    const struct runner_builtin_t *builtin;
    /* Set for a tool over HTTP only. */
    const char *method;
    const char *url;
    apr_interval_time_t timeout;
} runner_tool_t;

typedef struct runner_graph_t {
    const char *name;
    runner_model_t model;
    /* NULL when there is none. */
    const char *system_prompt;
    /* The most nodes that a run executes. */
    int64_t max_steps;
    /* runner_tool_t *, in the order of the configuration. */
    apr_array_header_t *tools;
} runner_graph_t;

/* The tool of that name; NULL when the graph has none. */
const runner_tool_t *runner_graph_find_tool(const runner_graph_t *graph,
                                            const char *name);

/* The names of the tools, separated by ", ", in pool; "" when there are none.
 */
const char *runner_graph_list_tools(const runner_graph_t *graph,
                                    apr_pool_t *pool);

/* JSON schemas of the state, the input and others; nodes and edges. One
 * reference each. */
json_object *runner_graph_describe_schemas(void);
json_object *runner_graph_describe_drawing(const runner_graph_t *graph);

/* The graph in `ready`: {schemas, drawing, has_subgraphs}; one reference. */
json_object *runner_graph_describe(const runner_graph_t *graph);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A built-in graph as the supervisor's hello describes it. */
#ifndef AGENT_RUNNER_GRAPH_H
#define AGENT_RUNNER_GRAPH_H

#include <apr_tables.h>
#include <apr_time.h>
#include <json-c/json.h>

#include "runners/builtin/base/problem.h"

struct runner_provider_t;

typedef struct runner_model_t {
    const struct runner_provider_t *provider;
    /* As the configuration writes it: "demo", "anthropic:NAME". */
    const char *label;
    const char *name;
    /* NULL: the provider's own address. Without a slash at its end. */
    const char *url;
    /* NULL: no key is sent. Never logged, never part of a message. */
    const char *key;
    /* How long the model may be silent. */
    apr_interval_time_t timeout;
    /* 0: the provider's default. */
    int64_t max_tokens;
} runner_model_t;

typedef enum runner_tool_kind_t {
    RUNNER_TOOL_CLOCK,
    RUNNER_TOOL_CALCULATOR,
    RUNNER_TOOL_HTTP
} runner_tool_kind_t;

typedef struct runner_tool_t {
    runner_tool_kind_t kind;
    const char *name;
    const char *description;
    /* JSON schema of the arguments; belongs to the graph's pool. */
    json_object *schema;
    /* Of an HTTP tool only. */
    const char *method;
    const char *url;
    apr_interval_time_t timeout;
} runner_tool_t;

typedef struct runner_graph_t {
    const char *name;
    runner_model_t model;
    /* NULL when there is none. */
    const char *system_prompt;
    int64_t max_steps;
    /* runner_tool_t, in the order of the configuration. */
    apr_array_header_t *tools;
} runner_graph_t;

/* Reads one graph of hello; everything is copied to pool. */
apr_status_t runner_graph_read(runner_graph_t **out, const char *name,
                               json_object *given, runner_problem_t **problem,
                               apr_pool_t *pool);

/* The tool of that name, NULL when the graph has none. */
const runner_tool_t *runner_graph_find_tool(const runner_graph_t *graph,
                                            const char *name);

/* What ready says of the graph: {schemas, drawing}; one reference. */
json_object *runner_graph_describe(const runner_graph_t *graph);

#endif

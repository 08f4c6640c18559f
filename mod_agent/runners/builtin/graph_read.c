/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the definition of a graph. */
#include "graph_read.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/model/provider.h"
#include "runners/builtin/tool/builtin.h"

#define INVALID_GRAPH            "InvalidGraph"
#define MAX_STEPS_DEFAULT        25
#define MODEL_TIMEOUT_DEFAULT_MS 60000
#define TOOL_TIMEOUT_DEFAULT_MS  10000
/* A day: longer than any run may take. */
#define TIMEOUT_MAX_MS 86400000

static const char *copy_member(json_object *object, const char *key,
                               apr_pool_t *pool)
{
    return apr_pstrdup(pool, agent_json_string(object, key, NULL));
}

static apr_interval_time_t read_timeout(json_object *given, int64_t fallback)
{
    int64_t ms = agent_json_integer(given, "timeout_ms", fallback);

    if (ms <= 0) {
        ms = fallback;
    }
    return apr_time_from_msec(ms > TIMEOUT_MAX_MS ? TIMEOUT_MAX_MS : ms);
}

static const char *copy_url(json_object *given, apr_pool_t *pool)
{
    char *url = apr_pstrdup(pool, agent_json_string(given, "url", NULL));
    size_t length = url ? strlen(url) : 0;

    while (length > 0 && url[length - 1] == '/') {
        url[--length] = '\0';
    }
    return url;
}

static apr_status_t read_model(runner_model_t *model, json_object *given,
                               runner_problem_t **problem, apr_pool_t *pool)
{
    const char *word = agent_json_string(given, "provider", "");

    model->provider = runner_provider_find(word);
    if (model->provider == NULL) {
        return runner_problem_set(problem, pool, INVALID_GRAPH,
                                  "unknown model provider \"%s\"", word);
    }
    model->name = copy_member(given, "name", pool);
    if (model->provider->is_named && model->name == NULL) {
        return runner_problem_set(problem, pool, INVALID_GRAPH,
                                  "the model of provider %s has no name", word);
    }
    model->label = model->provider->is_named
        ? apr_pstrcat(pool, word, ":", model->name, NULL)
        : model->provider->name;
    model->url = copy_url(given, pool);
    model->key = copy_member(given, "key", pool);
    model->timeout = read_timeout(given, MODEL_TIMEOUT_DEFAULT_MS);
    model->max_tokens = agent_json_integer(given, "max_tokens", 0);
    return APR_SUCCESS;
}

static apr_status_t read_http_tool(runner_tool_t *tool, json_object *given,
                                   runner_problem_t **problem, apr_pool_t *pool)
{
    json_object *schema = agent_json_get(given, "schema");

    tool->url = copy_member(given, "url", pool);
    tool->method = apr_pstrdup(pool,
                               agent_json_string(given, "method", "POST"));
    tool->description = apr_pstrdup(
        pool, agent_json_string(given, "description", ""));
    tool->timeout = read_timeout(given, TOOL_TIMEOUT_DEFAULT_MS);
    tool->schema = json_object_is_type(schema, json_type_object)
        ? runner_value_share(schema)
        : runner_value_add_text(json_object_new_object(), "type", "object");
    agent_json_own(tool->schema, pool);
    if (tool->url == NULL) {
        return runner_problem_set(problem, pool, INVALID_GRAPH,
                                  "the tool %s has no url", tool->name);
    }
    return APR_SUCCESS;
}

static apr_status_t read_tool(runner_graph_t *graph, json_object *given,
                              runner_problem_t **problem, apr_pool_t *pool)
{
    runner_tool_t *tool = apr_pcalloc(pool, sizeof(*tool));

    tool->name = copy_member(given, "name", pool);
    if (tool->name == NULL
        || runner_graph_find_tool(graph, tool->name) != NULL) {
        return runner_problem_set(problem, pool, INVALID_GRAPH,
                                  "a tool has no name, or that of another");
    }
    APR_ARRAY_PUSH(graph->tools, runner_tool_t *) = tool;
    if (strcmp(agent_json_string(given, "kind", ""), "http") == 0) {
        return read_http_tool(tool, given, problem, pool);
    }
    if (!runner_builtin_read(tool, pool)) {
        return runner_problem_set(problem, pool, INVALID_GRAPH,
                                  "there is no built-in tool \"%s\"",
                                  tool->name);
    }
    return APR_SUCCESS;
}

static apr_status_t read_tools(runner_graph_t *graph, json_object *given,
                               runner_problem_t **problem, apr_pool_t *pool)
{
    graph->tools = apr_array_make(pool, 4, sizeof(runner_tool_t *));
    for (size_t i = 0; i < runner_value_count(given); i++) {
        apr_status_t rv = read_tool(graph, json_object_array_get_idx(given, i),
                                    problem, pool);

        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_SUCCESS;
}

apr_status_t runner_graph_read(runner_graph_t **out, const char *name,
                               json_object *given, runner_problem_t **problem,
                               apr_pool_t *pool)
{
    runner_graph_t *graph = apr_pcalloc(pool, sizeof(*graph));
    const char *kind = agent_json_string(given, "kind", "");
    apr_status_t rv;

    *out = graph;
    graph->name = apr_pstrdup(pool, name);
    if (strcmp(kind, "builtin") != 0) {
        return runner_problem_set(problem, pool, INVALID_GRAPH,
                                  "this runner has no graphs of the kind "
                                  "\"%s\"",
                                  kind);
    }
    graph->system_prompt = copy_member(given, "system_prompt", pool);
    graph->max_steps = agent_json_integer(given, "max_steps",
                                          MAX_STEPS_DEFAULT);
    rv = read_model(&graph->model, agent_json_get(given, "model"), problem,
                    pool);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    return read_tools(graph, agent_json_get(given, "tools"), problem, pool);
}

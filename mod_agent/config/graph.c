/* SPDX-License-Identifier: Apache-2.0 */
/* The configured graphs: searches and prints them; see graph.h. */
#include "graph.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/json.h"

const agent_graph_t *agent_graph_get(const agent_server_config_t *config, int i)
{
    return APR_ARRAY_IDX(config->graphs, i, const agent_graph_t *);
}

/* Both places of a name that a deployment has twice. */
static const char *print_twice(const agent_graph_t *first,
                               const agent_graph_t *second, apr_pool_t *pool)
{
    return apr_psprintf(
        pool,
        "<AgentGraph>: expected each name once in a deployment, got '%s' of "
        "'%s' at %s:%d and at %s:%d",
        first->name, first->deployment, first->directive->filename,
        first->directive->line_num, second->directive->filename,
        second->directive->line_num);
}

const char *agent_graph_assign(const agent_server_config_t *config,
                               apr_pool_t *pool)
{
    /* Bounded: the graphs of the configuration, compared in pairs. */
    for (int i = 0; i < config->graphs->nelts; i++) {
        agent_graph_t *graph = APR_ARRAY_IDX(config->graphs, i,
                                             agent_graph_t *);

        graph->deployment = agent_config_host_deployment(graph->server);
        for (int k = 0; k < i; k++) {
            const agent_graph_t *other = agent_graph_get(config, k);

            if (strcmp(other->name, graph->name) == 0
                && strcmp(other->deployment, graph->deployment) == 0) {
                return print_twice(other, graph, pool);
            }
        }
    }
    return NULL;
}

static bool has_name(const apr_array_header_t *names, const char *name)
{
    for (int i = 0; i < names->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(names, i, const char *), name) == 0) {
            return true;
        }
    }
    return false;
}

const apr_array_header_t *agent_graph_list_deployments(
    const agent_server_config_t *config, apr_pool_t *pool)
{
    apr_array_header_t *names = apr_array_make(pool, 2, sizeof(const char *));

    for (int i = 0; i < config->graphs->nelts; i++) {
        const char *name = agent_graph_get(config, i)->deployment;

        if (!has_name(names, name)) {
            APR_ARRAY_PUSH(names, const char *) = name;
        }
    }
    return names;
}

bool agent_graph_has_deployment(const agent_server_config_t *config,
                                const char *deployment)
{
    for (int i = 0; i < config->graphs->nelts; i++) {
        if (strcmp(agent_graph_get(config, i)->deployment, deployment) == 0) {
            return true;
        }
    }
    return false;
}

const agent_graph_t *agent_graph_find_assistant(
    const agent_server_config_t *config, const char *deployment,
    const char *assistant_id)
{
    for (int i = 0; i < config->graphs->nelts; i++) {
        const agent_graph_t *graph = agent_graph_get(config, i);

        if (strcmp(graph->assistant_id, assistant_id) == 0
            && strcmp(graph->deployment, deployment) == 0) {
            return graph;
        }
    }
    return NULL;
}

const char *const *agent_graph_list_names(const agent_server_config_t *config,
                                          const char *deployment,
                                          apr_pool_t *pool)
{
    const char **names = apr_pcalloc(
        pool, sizeof(char *) * (apr_size_t)(config->graphs->nelts + 1));
    int count = 0;

    for (int i = 0; i < config->graphs->nelts; i++) {
        const agent_graph_t *graph = agent_graph_get(config, i);

        if (strcmp(graph->deployment, deployment) == 0) {
            names[count++] = graph->name;
        }
    }
    return names;
}

static const char *print_tool(const agent_tool_t *tool, apr_pool_t *pool)
{
    if (tool->method == NULL) {
        return apr_pstrcat(pool,
                           "{\"name\":", agent_json_quote(tool->name, pool),
                           ",\"kind\":\"builtin\"}", NULL);
    }
    return apr_pstrcat(
        pool, "{\"name\":", agent_json_quote(tool->name, pool),
        ",\"kind\":\"http\",\"method\":", agent_json_quote(tool->method, pool),
        ",\"url\":", agent_json_quote(tool->url, pool),
        ",\"description\":", agent_json_quote(tool->description, pool),
        ",\"schema\":", tool->schema, ",\"timeout_ms\":30000}", NULL);
}

static const char *print_tools(const agent_graph_t *graph, apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, graph->tools->nelts,
                                               sizeof(const char *));

    for (int i = 0; i < graph->tools->nelts; i++) {
        APR_ARRAY_PUSH(texts, const char *) = print_tool(
            APR_ARRAY_IDX(graph->tools, i, agent_tool_t *), pool);
    }
    return apr_array_pstrcat(pool, texts, ',');
}

static const char *print_graph(const agent_graph_t *graph, apr_pool_t *pool)
{
    return apr_psprintf(
        pool,
        "%s:{\"kind\":\"builtin\",\"model\":{\"provider\":%s,\"name\":%s,"
        "\"url\":%s,\"key\":%s,\"timeout_ms\":%" APR_TIME_T_FMT
        ",\"max_tokens\":%d},\"system_prompt\":%s,\"max_steps\":%d,"
        "\"tools\":[%s]}",
        agent_json_quote(graph->name, pool),
        agent_json_quote(graph->provider, pool),
        agent_json_quote(graph->model, pool),
        agent_json_quote(graph->url, pool), agent_json_quote(graph->key, pool),
        apr_time_as_msec(graph->timeout), graph->max_tokens,
        agent_json_quote(graph->system_prompt, pool), graph->max_steps,
        print_tools(graph, pool));
}

const char *agent_graph_print_json(const agent_server_config_t *config,
                                   const char *deployment, apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, config->graphs->nelts,
                                               sizeof(const char *));

    for (int i = 0; i < config->graphs->nelts; i++) {
        const agent_graph_t *graph = agent_graph_get(config, i);

        if (strcmp(graph->deployment, deployment) == 0) {
            APR_ARRAY_PUSH(texts, const char *) = print_graph(graph, pool);
        }
    }
    return apr_pstrcat(pool, "{", apr_array_pstrcat(pool, texts, ','), "}",
                       NULL);
}

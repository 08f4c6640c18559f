/* SPDX-License-Identifier: Apache-2.0 */
/* The configured graphs as the runner protocol's hello carries them. */
#include "graph.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/json.h"

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

const char *agent_config_graphs_json(const agent_server_config_t *config,
                                     apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, config->graphs->nelts,
                                               sizeof(const char *));

    for (int i = 0; i < config->graphs->nelts; i++) {
        APR_ARRAY_PUSH(texts, const char *) = print_graph(
            APR_ARRAY_IDX(config->graphs, i, agent_graph_t *), pool);
    }
    return apr_pstrcat(pool, "{", apr_array_pstrcat(pool, texts, ','), "}",
                       NULL);
}

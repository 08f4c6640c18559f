/* SPDX-License-Identifier: Apache-2.0 */
/* The configured graphs: searches and prints them; see graph.h. */
#include "graph.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/json.h"
#include "../core/uuid.h"
#include "location.h"

agent_graph_t *agent_graph_make(const char *name, cmd_parms *cmd)
{
    apr_pool_t *pool = cmd->pool;
    agent_graph_t *graph = apr_pcalloc(pool, sizeof(*graph));
    char id[AGENT_UUID_SIZE];

    agent_uuid_v5(id, name);
    graph->name = name;
    graph->server = cmd->server;
    graph->directive = cmd->directive;
    graph->assistant_id = apr_pstrdup(pool, id);
    graph->max_steps = 25;
    graph->max_tokens = 4096;
    graph->timeout = apr_time_from_sec(120);
    graph->tools = apr_array_make(pool, 4, sizeof(agent_tool_t *));
    return graph;
}

const char *agent_graph_directive(const agent_graph_t *graph)
{
    return graph->application != NULL ? "AgentApplication" : "<AgentGraph>";
}

const agent_graph_t *agent_graph_get(const agent_server_config_t *config, int i)
{
    return APR_ARRAY_IDX(config->graphs, i, const agent_graph_t *);
}

/* Returns the error message for a name that a deployment has twice, with both
 * lines. what: the kind of name, that of a graph or of an application. */
static const char *print_twice(const agent_graph_t *first,
                               const agent_graph_t *second, const char *what,
                               const char *name, apr_pool_t *pool)
{
    return apr_psprintf(
        pool,
        "%s: expected each name %sonce in a deployment, got '%s' of "
        "'%s' at %s:%d and at %s:%d: rename one, or declare it in a virtual "
        "host with an AgentDeployment of its own",
        agent_graph_directive(second), what, name, first->deployment,
        first->directive->filename, first->directive->line_num,
        second->directive->filename, second->directive->line_num);
}

/* Returns an error message, in pool, when the two cannot be in one deployment.
 */
static const char *check_pair(const agent_graph_t *first,
                              const agent_graph_t *second, apr_pool_t *pool)
{
    const agent_application_t *one = first->application;
    const agent_application_t *other = second->application;

    if (strcmp(first->deployment, second->deployment) != 0) {
        return NULL;
    }
    if (strcmp(first->name, second->name) == 0) {
        return print_twice(first, second, "", first->name, pool);
    }
    return one != NULL && other != NULL && one != other
            && strcmp(one->name, other->name) == 0
        ? print_twice(first, second, "of an application ", one->name, pool)
        : NULL;
}

const char *agent_graph_assign(const agent_server_config_t *config,
                               apr_pool_t *pool)
{
    /* Bounded: the graphs of the configuration, compared in pairs. */
    for (int i = 0; i < config->graphs->nelts; i++) {
        agent_graph_t *graph = APR_ARRAY_IDX(config->graphs, i,
                                             agent_graph_t *);

        graph->deployment = agent_location_host_deployment(graph->server);
        for (int k = 0; k < i; k++) {
            const char *problem = check_pair(agent_graph_get(config, k), graph,
                                             pool);

            if (problem != NULL) {
                return problem;
            }
        }
    }
    return NULL;
}

bool agent_graph_is_of(const agent_graph_t *graph,
                       const agent_graph_pool_t *key)
{
    return graph->application == key->application
        && strcmp(graph->deployment, key->deployment) == 0;
}

static bool has_pool_of(const apr_array_header_t *keys,
                        const agent_graph_t *graph)
{
    for (int i = 0; i < keys->nelts; i++) {
        if (agent_graph_is_of(graph,
                              &APR_ARRAY_IDX(keys, i, agent_graph_pool_t))) {
            return true;
        }
    }
    return false;
}

const apr_array_header_t *agent_graph_list_pools(
    const agent_server_config_t *config, apr_pool_t *pool)
{
    apr_array_header_t *keys = apr_array_make(pool, 2,
                                              sizeof(agent_graph_pool_t));

    for (int i = 0; i < config->graphs->nelts; i++) {
        const agent_graph_t *graph = agent_graph_get(config, i);

        if (!has_pool_of(keys, graph)) {
            APR_ARRAY_PUSH(keys, agent_graph_pool_t) = (agent_graph_pool_t){
                graph->deployment, graph->application};
        }
    }
    return keys;
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

/* Returns the names of the graphs of a deployment, or of a pool of it if key is
 * not NULL. */
static const char *const *list_names(const agent_server_config_t *config,
                                     const char *deployment,
                                     const agent_graph_pool_t *key,
                                     apr_pool_t *pool)
{
    const char **names = apr_pcalloc(
        pool, sizeof(char *) * (apr_size_t)(config->graphs->nelts + 1));
    int count = 0;

    for (int i = 0; i < config->graphs->nelts; i++) {
        const agent_graph_t *graph = agent_graph_get(config, i);

        if (key != NULL ? agent_graph_is_of(graph, key)
                        : strcmp(graph->deployment, deployment) == 0) {
            names[count++] = graph->name;
        }
    }
    return names;
}

const char *const *agent_graph_list_names(const agent_server_config_t *config,
                                          const char *deployment,
                                          apr_pool_t *pool)
{
    return list_names(config, deployment, NULL, pool);
}

const char *const *agent_graph_list_of_pool(const agent_server_config_t *config,
                                            const agent_graph_pool_t *key,
                                            apr_pool_t *pool)
{
    return list_names(config, key->deployment, key, pool);
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

static const char *print_of_application(const agent_graph_t *graph,
                                        apr_pool_t *pool)
{
    return apr_pstrcat(pool, agent_json_quote(graph->name, pool),
                       ":{\"kind\":\"langgraph\",\"path\":",
                       agent_json_quote(graph->path, pool), ",\"description\":",
                       agent_json_quote(graph->description, pool), "}", NULL);
}

static const char *print_builtin(const agent_graph_t *graph, apr_pool_t *pool)
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
                                   const agent_graph_pool_t *key,
                                   apr_pool_t *pool)
{
    apr_array_header_t *texts = apr_array_make(pool, config->graphs->nelts,
                                               sizeof(const char *));

    for (int i = 0; i < config->graphs->nelts; i++) {
        const agent_graph_t *graph = agent_graph_get(config, i);

        if (agent_graph_is_of(graph, key)) {
            APR_ARRAY_PUSH(texts, const char *) = graph->application != NULL
                ? print_of_application(graph, pool)
                : print_builtin(graph, pool);
        }
    }
    return apr_pstrcat(pool, "{", apr_array_pstrcat(pool, texts, ','), "}",
                       NULL);
}

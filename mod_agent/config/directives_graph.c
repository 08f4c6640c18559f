/* SPDX-License-Identifier: Apache-2.0 */
/* <AgentGraph NAME> and the directives inside it; see directives.h. */
#include "directives.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "../core/json.h"
#include "../core/word.h"
#include "../private.h"
#include "file.h"
#include "graph.h"
#include "value.h"

#define MAX_SCHEMA_BYTES (256 * 1024)
#define MAX_KEY_BYTES    4096

static const char *const builtin_tools[] = {"clock", "calculator", NULL};

/* The graph of the directive's section; NULL outside of <AgentGraph>: *problem
 * is the error message. */
static agent_graph_t *current_graph(const char **problem, cmd_parms *cmd)
{
    const ap_directive_t *parent = cmd->directive->parent;
    agent_server_config_t *config = agent_config_server(cmd->server);

    *problem = NULL;
    if (parent == NULL || strcasecmp(parent->directive, "<AgentGraph") != 0
        || config->graphs->nelts == 0) {
        *problem = apr_pstrcat(cmd->pool, cmd->cmd->name,
                               ": expected inside <AgentGraph NAME>, got "
                               "outside",
                               NULL);
        return NULL;
    }
    return APR_ARRAY_IDX(config->graphs, config->graphs->nelts - 1,
                         agent_graph_t *);
}

static bool is_name(const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++) {
        if (!apr_isalnum(text[i]) && strchr("_-", text[i]) == NULL) {
            return false;
        }
    }
    return length > 0 && length <= 64;
}

static const char *close_graph(cmd_parms *cmd, const agent_graph_t *graph)
{
    if (graph->provider == NULL) {
        return apr_psprintf(cmd->pool,
                            "<AgentGraph %s>: expected an AgentModel inside, "
                            "got none",
                            graph->name);
    }
    return NULL;
}

const char *agent_directive_graph(cmd_parms *cmd, void *dir, const char *args)
{
    const char *problem = ap_check_cmd_context(cmd, NOT_IN_DIR_CONTEXT);
    const agent_server_config_t *config = agent_config_server(cmd->server);
    const char *end = strrchr(args, '>');
    agent_graph_t *graph;
    const char *words;
    char *name;

    if (problem != NULL) {
        return problem;
    }
    words = apr_pstrndup(cmd->temp_pool, args,
                         end ? (apr_size_t)(end - args) : 0);
    args = words;
    name = ap_getword_conf(cmd->pool, &args);
    if (!is_name(name) || *args != '\0') {
        return apr_psprintf(cmd->pool,
                            "<AgentGraph>: expected a name of letters, "
                            "digits, _ and -, at most 64, got '%s'",
                            words);
    }
    graph = agent_graph_make(name, cmd);
    APR_ARRAY_PUSH(config->graphs, agent_graph_t *) = graph;
    problem = ap_walk_config(cmd->directive->first_child, cmd, cmd->context);
    return problem != NULL ? problem : close_graph(cmd, graph);
}

/* PROVIDER:NAME; false for another provider, or without a name. */
static bool read_model(agent_graph_t *graph, const char *provider,
                       const char *arg)
{
    size_t length = strlen(provider);

    if (strncmp(arg, provider, length) != 0 || arg[length] != ':'
        || arg[length + 1] == '\0') {
        return false;
    }
    graph->provider = provider;
    graph->model = arg + length + 1;
    return true;
}

const char *agent_directive_model(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *problem;
    agent_graph_t *graph = current_graph(&problem, cmd);

    if (graph == NULL) {
        return problem;
    }
    if (strcmp(arg, "demo") == 0) {
        graph->provider = "demo";
        graph->model = "demo";
        return NULL;
    }
    return read_model(graph, "anthropic", arg)
            || read_model(graph, "openai", arg)
        ? NULL
        : apr_psprintf(cmd->pool,
                       "AgentModel: expected demo, anthropic:NAME or "
                       "openai:NAME, got '%s'",
                       arg);
}

const char *agent_directive_model_url(cmd_parms *cmd, void *dir,
                                      const char *arg)
{
    const char *problem;
    agent_graph_t *graph = current_graph(&problem, cmd);

    if (graph == NULL) {
        return problem;
    }
    graph->url = arg;
    return agent_value_url(cmd, arg);
}

const char *agent_directive_model_key(cmd_parms *cmd, void *dir,
                                      const char *arg)
{
    const char *problem;
    agent_graph_t *graph = current_graph(&problem, cmd);
    char *key;

    if (graph == NULL) {
        return problem;
    }
    key = agent_file_read(&problem, cmd, arg, MAX_KEY_BYTES);
    if (key == NULL) {
        return problem;
    }
    key[strcspn(key, "\r\n")] = '\0';
    if (*key == '\0') {
        return apr_psprintf(cmd->pool,
                            "AgentModelKeyFile: expected a key in the first "
                            "line, got an empty one in '%s'",
                            arg);
    }
    graph->key = key;
    agent_file_erase_with_pool(key, strlen(key), cmd->pool);
    return NULL;
}

const char *agent_directive_system_prompt(cmd_parms *cmd, void *dir,
                                          const char *arg)
{
    const char *problem;
    agent_graph_t *graph = current_graph(&problem, cmd);

    if (graph != NULL) {
        graph->system_prompt = arg;
    }
    return problem;
}

const char *agent_directive_model_timeout(cmd_parms *cmd, void *dir,
                                          const char *arg)
{
    static const agent_duration_range_t range = {1, 3600, "s", false};
    const char *problem;
    agent_graph_t *graph = current_graph(&problem, cmd);

    return graph == NULL
        ? problem
        : agent_value_duration(&graph->timeout, cmd, arg, &range);
}

/* Stores a whole number from 1 to high. */
static const char *set_number(int *out, cmd_parms *cmd, const char *arg,
                              int high)
{
    apr_int64_t value = 0;
    const char *problem = agent_value_number(&value, cmd, arg, 1, high);

    if (problem == NULL) {
        *out = (int)value;
    }
    return problem;
}

const char *agent_directive_max_tokens(cmd_parms *cmd, void *dir,
                                       const char *arg)
{
    const char *problem;
    agent_graph_t *graph = current_graph(&problem, cmd);

    return graph == NULL ? problem
                         : set_number(&graph->max_tokens, cmd, arg, 1000000);
}

const char *agent_directive_max_steps(cmd_parms *cmd, void *dir,
                                      const char *arg)
{
    const char *problem;
    agent_graph_t *graph = current_graph(&problem, cmd);

    return graph == NULL ? problem
                         : set_number(&graph->max_steps, cmd, arg, 1000);
}

/* Models choose tools by their description. */
static void describe(agent_tool_t *tool, const char *description,
                     cmd_parms *cmd)
{
    if (*description == '\0') {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, cmd->server,
                     AGENT_LOGNO(0441) "AgentTool %s: expected a description, "
                                       "in the schema or as the last argument, "
                                       "got none: the model sees only its name",
                     tool->name);
        description = tool->name;
    }
    tool->description = apr_pstrdup(cmd->pool, description);
}

static const char *read_schema(agent_tool_t *tool, cmd_parms *cmd,
                               const char *path)
{
    const char *problem = NULL;
    char *text = agent_file_read(&problem, cmd, path, MAX_SCHEMA_BYTES);
    json_object *schema;
    agent_error_t *err;

    if (text == NULL) {
        return problem;
    }
    if (agent_json_parse(&schema, text, strlen(text), &err, cmd->temp_pool)
        != APR_SUCCESS) {
        return apr_psprintf(cmd->pool,
                            "AgentTool: expected JSON in '%s', got: %s", path,
                            err->detail);
    }
    /* Models refuse any other type, in every request. */
    if (strcmp(agent_json_string(schema, "type", ""), "object") != 0) {
        return apr_psprintf(cmd->pool,
                            "AgentTool: expected a JSON Schema with "
                            "\"type\": \"object\" in '%s', got none",
                            path);
    }
    tool->schema = agent_json_print(schema, cmd->pool);
    if (tool->description == NULL) {
        describe(tool, agent_json_string(schema, "description", ""), cmd);
    }
    return NULL;
}

static const char *check_builtin(cmd_parms *cmd, const char *name)
{
    return agent_word_find(name, builtin_tools) != NULL
        ? NULL
        : apr_psprintf(cmd->pool,
                       "AgentTool: expected %s as a builtin tool, got '%s'",
                       agent_word_print(builtin_tools, cmd->pool), name);
}

static const char *read_http_tool(agent_tool_t *tool, cmd_parms *cmd, int argc,
                                  char *const argv[])
{
    const char *problem = agent_value_url(cmd, argv[2]);

    if (problem != NULL) {
        return problem;
    }
    if (strcmp(argv[1], "POST") != 0) {
        return apr_psprintf(cmd->pool,
                            "AgentTool: expected builtin or POST, got '%s'",
                            argv[1]);
    }
    tool->method = argv[1];
    tool->url = argv[2];
    tool->description = argc == 5 ? argv[4] : NULL;
    return read_schema(tool, cmd, argv[3]);
}

const char *agent_directive_tool(cmd_parms *cmd, void *dir, int argc,
                                 char *const argv[])
{
    const char *problem;
    agent_graph_t *graph = current_graph(&problem, cmd);
    agent_tool_t *tool = apr_pcalloc(cmd->pool, sizeof(*tool));

    if (graph == NULL) {
        return problem;
    }
    if (argc != 2 && argc != 4 && argc != 5) {
        return apr_psprintf(cmd->pool,
                            "AgentTool: expected NAME builtin, or NAME POST "
                            "URL SCHEMAFILE [DESCRIPTION], got %d arguments",
                            argc);
    }
    tool->name = argv[0];
    if (!is_name(tool->name)) {
        return apr_psprintf(cmd->pool,
                            "AgentTool: expected a name of letters, digits, "
                            "_ and -, at most 64, got '%s'",
                            tool->name);
    }
    if (argc == 2 && strcmp(argv[1], "builtin") != 0) {
        return apr_psprintf(cmd->pool, "AgentTool: expected builtin, got '%s'",
                            argv[1]);
    }
    problem = argc == 2 ? check_builtin(cmd, tool->name)
                        : read_http_tool(tool, cmd, argc, argv);
    if (problem == NULL) {
        APR_ARRAY_PUSH(graph->tools, agent_tool_t *) = tool;
    }
    return problem;
}

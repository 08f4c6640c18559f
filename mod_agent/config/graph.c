/* SPDX-License-Identifier: Apache-2.0 */
/* <AgentGraph NAME> and the directives inside it. */
#include "graph.h"
#include "directives.h"
#include "file.h"
#include "value.h"

#include <string.h>
#include <strings.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "../core/json.h"
#include "../core/uuid.h"
#include "../private.h"

#define MAX_SCHEMA_BYTES (256 * 1024)
#define MAX_KEY_BYTES    4096

static const char *const builtin_tools[] = {"clock", "calculator"};

/* The graph of the directive's section; NULL outside of <AgentGraph>. */
static agent_graph_t *current_graph(cmd_parms *cmd)
{
    const ap_directive_t *parent = cmd->directive->parent;
    agent_server_config_t *config = agent_config_server(cmd->server);

    if (parent == NULL || strcasecmp(parent->directive, "<AgentGraph") != 0
        || config->graphs->nelts == 0) {
        return NULL;
    }
    return APR_ARRAY_IDX(config->graphs, config->graphs->nelts - 1,
                         agent_graph_t *);
}

static const char *refuse_outside(cmd_parms *cmd)
{
    return apr_pstrcat(cmd->pool, cmd->cmd->name,
                       ": expected inside <AgentGraph NAME>, got outside",
                       NULL);
}

static int is_name(const char *text, size_t length)
{
    if (length == 0 || length > 64) {
        return 0;
    }
    for (size_t i = 0; i < length; i++) {
        if (!apr_isalnum(text[i]) && strchr("_-", text[i]) == NULL) {
            return 0;
        }
    }
    return 1;
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
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);
    const char *end = strrchr(args, '>');
    agent_graph_t *graph;
    const char *words;
    char *name;
    char id[AGENT_UUID_SIZE];

    if (config == NULL) {
        return problem;
    }
    words = apr_pstrndup(cmd->temp_pool, args,
                         end ? (apr_size_t)(end - args) : 0);
    args = words;
    name = ap_getword_conf(cmd->pool, &args);
    if (!is_name(name, strlen(name)) || *args != '\0') {
        return apr_psprintf(cmd->pool,
                            "<AgentGraph>: expected a name of letters, "
                            "digits, _ and -, at most 64, got '%s'",
                            words);
    }
    if (agent_config_find_graph(config, name) != NULL) {
        return apr_psprintf(cmd->pool,
                            "<AgentGraph>: expected each name once, got '%s' "
                            "again",
                            name);
    }
    graph = apr_pcalloc(cmd->pool, sizeof(*graph));
    graph->name = name;
    agent_uuid_v5(id, name);
    graph->assistant_id = apr_pstrdup(cmd->pool, id);
    graph->max_steps = 25;
    graph->max_tokens = 4096;
    graph->timeout = apr_time_from_sec(120);
    graph->tools = apr_array_make(cmd->pool, 4, sizeof(agent_tool_t *));
    APR_ARRAY_PUSH(config->graphs, agent_graph_t *) = graph;
    problem = ap_walk_config(cmd->directive->first_child, cmd, cmd->context);
    return problem != NULL ? problem : close_graph(cmd, graph);
}

const char *agent_directive_model(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_graph_t *graph = current_graph(cmd);

    if (graph == NULL) {
        return refuse_outside(cmd);
    }
    if (strcmp(arg, "demo") == 0) {
        graph->provider = "demo";
        graph->model = "demo";
        return NULL;
    }
    if (strncmp(arg, "anthropic:", 10) == 0 && arg[10] != '\0') {
        graph->provider = "anthropic";
        graph->model = arg + 10;
        return NULL;
    }
    if (strncmp(arg, "openai:", 7) == 0 && arg[7] != '\0') {
        graph->provider = "openai";
        graph->model = arg + 7;
        return NULL;
    }
    return apr_psprintf(cmd->pool,
                        "AgentModel: expected demo, anthropic:NAME or "
                        "openai:NAME, got '%s'",
                        arg);
}

static const char *check_url(cmd_parms *cmd, const char *url)
{
    if (strncasecmp(url, "http://", 7) != 0
        && strncasecmp(url, "https://", 8) != 0) {
        return apr_psprintf(cmd->pool,
                            "%s: expected a URL with http:// or https://, "
                            "got '%s'",
                            cmd->cmd->name, url);
    }
    return NULL;
}

const char *agent_directive_model_url(cmd_parms *cmd, void *dir,
                                      const char *arg)
{
    agent_graph_t *graph = current_graph(cmd);
    const char *problem = check_url(cmd, arg);

    if (graph == NULL) {
        return refuse_outside(cmd);
    }
    graph->url = arg;
    return problem;
}

const char *agent_directive_model_key(cmd_parms *cmd, void *dir,
                                      const char *arg)
{
    agent_graph_t *graph = current_graph(cmd);
    const char *problem = NULL;
    char *key;

    if (graph == NULL) {
        return refuse_outside(cmd);
    }
    key = agent_config_read_file(&problem, cmd, arg, MAX_KEY_BYTES);
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
    agent_config_erase_with_pool(key, strlen(key), cmd->pool);
    return NULL;
}

const char *agent_directive_system_prompt(cmd_parms *cmd, void *dir,
                                          const char *arg)
{
    agent_graph_t *graph = current_graph(cmd);

    if (graph == NULL) {
        return refuse_outside(cmd);
    }
    graph->system_prompt = arg;
    return NULL;
}

/* Reads a whole number; sets *graph and *value, or returns an error message for
 * httpd. */
static const char *read_number(agent_graph_t **graph, apr_int64_t *value,
                               cmd_parms *cmd, const char *arg,
                               apr_int64_t high)
{
    *value = 0;
    *graph = current_graph(cmd);
    return *graph == NULL ? refuse_outside(cmd)
                          : agent_value_number(value, cmd, arg, 1, high);
}

const char *agent_directive_model_timeout(cmd_parms *cmd, void *dir,
                                          const char *arg)
{
    static const agent_duration_range_t range = {1, 3600, "s", false};
    agent_graph_t *graph = current_graph(cmd);

    return graph == NULL
        ? refuse_outside(cmd)
        : agent_value_duration(&graph->timeout, cmd, arg, &range);
}

const char *agent_directive_max_tokens(cmd_parms *cmd, void *dir,
                                       const char *arg)
{
    agent_graph_t *graph;
    apr_int64_t value;
    const char *problem = read_number(&graph, &value, cmd, arg, 1000000);

    if (problem == NULL && graph != NULL) {
        graph->max_tokens = (int)value;
    }
    return problem;
}

const char *agent_directive_max_steps(cmd_parms *cmd, void *dir,
                                      const char *arg)
{
    agent_graph_t *graph;
    apr_int64_t value;
    const char *problem = read_number(&graph, &value, cmd, arg, 1000);

    if (problem == NULL && graph != NULL) {
        graph->max_steps = (int)value;
    }
    return problem;
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
    char *text = agent_config_read_file(&problem, cmd, path, MAX_SCHEMA_BYTES);
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
    /* Models refuse another one, with every request. */
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

static const char *add_builtin(agent_tool_t *tool, cmd_parms *cmd)
{
    for (size_t i = 0; i < sizeof(builtin_tools) / sizeof(builtin_tools[0]);
         i++) {
        if (strcmp(tool->name, builtin_tools[i]) == 0) {
            return NULL;
        }
    }
    return apr_psprintf(cmd->pool,
                        "AgentTool: expected clock or calculator as a builtin "
                        "tool, got '%s'",
                        tool->name);
}

static const char *add_http(agent_tool_t *tool, cmd_parms *cmd, int argc,
                            char *const argv[])
{
    const char *problem = check_url(cmd, argv[2]);

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
    agent_graph_t *graph = current_graph(cmd);
    agent_tool_t *tool = apr_pcalloc(cmd->pool, sizeof(*tool));
    const char *problem;

    if (graph == NULL) {
        return refuse_outside(cmd);
    }
    if (argc != 2 && argc != 4 && argc != 5) {
        return apr_psprintf(cmd->pool,
                            "AgentTool: expected NAME builtin, or NAME POST "
                            "URL SCHEMAFILE [DESCRIPTION], got %d arguments",
                            argc);
    }
    tool->name = argv[0];
    if (!is_name(tool->name, strlen(tool->name))) {
        return apr_psprintf(cmd->pool,
                            "AgentTool: expected a name of letters, digits, "
                            "_ and -, at most 64, got '%s'",
                            tool->name);
    }
    if (argc == 2 && strcmp(argv[1], "builtin") != 0) {
        return apr_psprintf(cmd->pool, "AgentTool: expected builtin, got '%s'",
                            argv[1]);
    }
    problem = argc == 2 ? add_builtin(tool, cmd)
                        : add_http(tool, cmd, argc, argv);
    if (problem == NULL) {
        APR_ARRAY_PUSH(graph->tools, agent_tool_t *) = tool;
    }
    return problem;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* AgentApplication and the programs of applications; see directives.h. */
#include "directives.h"

#include <string.h>
#include <strings.h>

#include <apr_file_info.h>
#include <apr_lib.h>
#include <apr_strings.h>

#include "unused_directive.h"
#include "graph.h"
#include "location.h"

static bool is_name(const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++) {
        if (!apr_isalnum(text[i]) && strchr("_-.", text[i]) == NULL) {
            return false;
        }
    }
    return length > 0 && length <= AGENT_APPLICATION_NAME_MAX;
}

/* httpd allows a server-level directive inside <AgentGraph>, too; this refuses
 * it. */
static const char *check_place(cmd_parms *cmd)
{
    const ap_directive_t *parent = cmd->directive->parent;

    return parent != NULL && strcasecmp(parent->directive, "<AgentGraph") == 0
        ? apr_pstrcat(cmd->pool, cmd->cmd->name,
                      ": expected outside of <AgentGraph>, got inside", NULL)
        : ap_check_cmd_context(cmd, NOT_IN_DIR_CONTEXT);
}

static const char *read_directory(agent_application_t *application,
                                  cmd_parms *cmd, const char *arg)
{
    char *path = ap_server_root_relative(cmd->pool, arg);
    apr_status_t rv = APR_EBADPATH;
    apr_finfo_t info;
    char reason[120];

    if (path != NULL) {
        size_t length = strlen(path);

        /* Bounded: the length of the path. */
        while (length > 1 && path[length - 1] == '/') {
            path[--length] = '\0';
        }
        rv = apr_stat(&info, path, APR_FINFO_TYPE, cmd->temp_pool);
    }
    application->directory = path;
    if (rv == APR_SUCCESS && info.filetype == APR_DIR) {
        return NULL;
    }
    return apr_psprintf(cmd->pool,
                        "AgentApplication %s: expected a directory, got '%s' "
                        "(%s)",
                        application->name, arg,
                        rv == APR_SUCCESS
                            ? "not a directory"
                            : apr_strerror(rv, reason, sizeof(reason)));
}

static const char *read_arguments(agent_application_t *application,
                                  cmd_parms *cmd, const char *name,
                                  const char *option)
{
    application->name = name;
    application->ignores_auth = option != NULL;
    if (!is_name(name)) {
        return apr_psprintf(cmd->pool,
                            "AgentApplication: expected a name of letters, "
                            "digits, ., _ and -, at most %d, got '%s'",
                            AGENT_APPLICATION_NAME_MAX, name);
    }
    return option == NULL || strcasecmp(option, "ignore-auth") == 0
        ? NULL
        : apr_psprintf(cmd->pool,
                       "AgentApplication %s: expected ignore-auth or nothing "
                       "after the directory, got '%s'",
                       name, option);
}

static void add_graphs(const agent_application_t *application,
                       const apr_array_header_t *graphs, cmd_parms *cmd)
{
    const agent_server_config_t *config = agent_config_server(cmd->server);

    /* Bounded: the graphs of one file. */
    for (int i = 0; i < graphs->nelts; i++) {
        const agent_application_graph_t *own = &APR_ARRAY_IDX(
            graphs, i, const agent_application_graph_t);
        agent_graph_t *graph = agent_graph_make(own->name, cmd);

        graph->application = application;
        graph->path = own->path;
        graph->description = own->description;
        APR_ARRAY_PUSH(config->graphs, agent_graph_t *) = graph;
    }
}

const char *agent_directive_application(cmd_parms *cmd, void *dir,
                                        const char *name, const char *directory,
                                        const char *option)
{
    agent_application_t *application = apr_pcalloc(cmd->pool,
                                                   sizeof(*application));
    const char *problem = check_place(cmd);
    agent_application_file_t file;

    if (problem == NULL) {
        problem = read_arguments(application, cmd, name, option);
    }
    if (problem == NULL) {
        problem = read_directory(application, cmd, directory);
    }
    if (problem == NULL) {
        problem = agent_application_read(application, &file, cmd->pool,
                                         cmd->temp_pool);
    }
    if (problem == NULL) {
        add_graphs(application, file.graphs, cmd);
    }
    return problem;
}

/* The program of runners of a language. */
static const char *set_program(const char **out, cmd_parms *cmd,
                               const char *arg)
{
    agent_unused_directive_record(cmd, NULL);
    *out = ap_server_root_relative(cmd->pool, arg);
    return NULL;
}

const char *agent_directive_python(cmd_parms *cmd, void *dir, const char *arg)
{
    return set_program(&((agent_dir_config_t *)dir)->runner.python, cmd, arg);
}

const char *agent_directive_node(cmd_parms *cmd, void *dir, const char *arg)
{
    return set_program(&((agent_dir_config_t *)dir)->runner.node, cmd, arg);
}

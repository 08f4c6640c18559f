/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LangGraph applications. httpd reads the graphs and the language from their
 * langgraph.json; their runners read the rest.
 */
#ifndef AGENT_CONFIG_APPLICATION_H
#define AGENT_CONFIG_APPLICATION_H

#include <stdbool.h>
#include <stddef.h>

#include <apr_tables.h>

/* AgentApplication NAME DIRECTORY */
typedef struct agent_application_t {
    /* NULL: no directive names it yet, and error messages begin with the file.
     */
    const char *name;
    /* Absolute, without a slash at its end. */
    const char *directory;
    /* True: JavaScript or TypeScript; false: Python. */
    bool is_node;
    /* It is served although langgraph.json has `auth`. */
    bool ignores_auth;
} agent_application_t;

/* A graph of langgraph.json. */
typedef struct agent_application_graph_t {
    const char *name;
    /* FILE:NAME or MODULE:NAME, as written. */
    const char *path;
    /* NULL: none. */
    const char *description;
} agent_application_graph_t;

/* One langgraph.json. */
typedef struct agent_application_file_t {
    /* agent_application_graph_t, from 1 to AGENT_APPLICATION_GRAPHS_MAX. */
    apr_array_header_t *graphs;
    /* A graph is in TypeScript or JSX, which Node imports with tsx. */
    bool has_typescript;
    /* The whole file. */
    struct json_object *json;
} agent_application_file_t;

/* The longest name of a graph, in bytes, and of an application; and the most
 * graphs of one, since the start compares their names in pairs. */
#define AGENT_APPLICATION_NAME_MAX   64
#define AGENT_APPLICATION_GRAPHS_MAX 200

/* The folder, in that of an application, for all that `agentctl build` makes,
 * except Node's node_modules; and the programs in it that httpd executes. */
#define AGENT_APPLICATION_FOLDER ".agent"
#define AGENT_APPLICATION_PYTHON AGENT_APPLICATION_FOLDER "/venv/bin/python"
#define AGENT_APPLICATION_NODE   AGENT_APPLICATION_FOLDER "/node/bin/node"

/*
 * Reads DIRECTORY/langgraph.json: sets the language, and *file. All results are
 * copied to pool, except file->json, which is in temp_pool; that is scratch
 * memory, of at most 70 MB for a hostile file. Returns NULL, or the error
 * message, in pool, which names the file and the line or member.
 */
const char *agent_application_read(agent_application_t *application,
                                   agent_application_file_t *file,
                                   apr_pool_t *pool, apr_pool_t *temp_pool);

#endif

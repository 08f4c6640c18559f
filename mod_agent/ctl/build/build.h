/* SPDX-License-Identifier: Apache-2.0 */
/* `agentctl build`: prepares a LangGraph application for its runners. */
#ifndef AGENT_CTL_BUILD_H
#define AGENT_CTL_BUILD_H

#include <stdbool.h>

#include <json-c/json.h>

#include "../../config/application.h"

typedef struct ctl_build_t {
    apr_pool_t *pool;
    /* As given; NULL or false: not given. */
    const char *user;
    const char *python;
    /* As given; for an application in JavaScript replaced by the path of the
     * chosen program. */
    const char *node;
    bool ignores_auth;
    bool prints_schemas;
    /* Of the import of the graphs: memory in bytes, 0 for no limit; time. */
    apr_int64_t memory;
    int timeout_sec;
    /* The lines for httpd.conf, for the record; NULL: none is printed. */
    json_object *lines;
    /* DIRECTORY as it was given, made absolute: its links are not followed. */
    const char *argument;
    /* Where the programs of the runners are. */
    const char *runners;
    /* As langgraph.json has them; the directory is the working one. */
    agent_application_t application;
    json_object *manifest;
    /* A graph is in TypeScript. */
    bool has_typescript;
} ctl_build_t;

/*
 * Builds application.directory, which is absolute: becomes the user, reads
 * langgraph.json, installs the dependencies, imports every graph, and prints
 * what it does and found; with lines, on standard error, and at its end a
 * record on standard output. Returns the exit status: 0; 1, if something
 * failed; 2, if langgraph.json or the folder of the runners cannot be used.
 * Everything that reads or executes files of the application has the user's
 * rights only.
 */
int ctl_build(ctl_build_t *build);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* `agentctl build`: prepares a LangGraph application for its runners. */
#ifndef AGENT_CTL_BUILD_H
#define AGENT_CTL_BUILD_H

#include "manifest.h"

/* The options, and the operand. */
typedef struct ctl_build_options_t {
    /* The values as given; NULL: not given. */
    const char *user;
    const char *python;
    const char *node;
    bool prints_schemas;
    /* Limits of the import of the graphs: memory in bytes, 0 for none; time. */
    apr_int64_t memory;
    int timeout_sec;
    /* DIRECTORY as it was given, made absolute: its links are not followed. */
    const char *argument;
    /* The folder with the programs of the runners. */
    const char *runners;
} ctl_build_options_t;

typedef struct ctl_build_t {
    ctl_build_options_t options;
    /* The application as langgraph.json has it; its directory is the working
     * one. */
    agent_application_t application;
    ctl_manifest_t manifest;
    /* For an application in JavaScript the path of the chosen Node. */
    const char *node;
    /* The lines for httpd.conf, for the record; NULL: none is printed. */
    json_object *lines;
    apr_pool_t *pool;
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

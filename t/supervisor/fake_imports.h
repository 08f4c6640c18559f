/* SPDX-License-Identifier: Apache-2.0 */
/* The start of the fake runner: graphs whose import ends or blocks it. */
#ifndef FAKE_IMPORTS_H
#define FAKE_IMPORTS_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "fake_graphs.h"
#include "fake_wire.h"

/* Graphs that are to end or block the process, unless they have failed. */
static void import_graphs(json_object *graphs, json_object *failed)
{
    json_object_object_foreach(graphs, key, graph)
    {
        const char *start = get(graph, "start");
        const char *until = get(graph, "until");

        if (start == NULL || strncmp(start, "import_", 7) != 0
            || get(failed, key) != NULL
            || (until != NULL && access(until, F_OK) == 0)) {
            continue;
        }
        say("{\"type\":\"importing\",\"graph_id\":\"%s\"}", key);
        if (strcmp(start, "import_exits") == 0) {
            exit(3);
        }
        pause();
    }
    say("{\"type\":\"importing\",\"graph_id\":null}");
}

/* A graph that has failed: ends the run of the line. */
static int end_failed(json_object *failed, json_object *line)
{
    const char *error = get(failed, get(line, "graph_id"));

    if (error != NULL) {
        say("{\"type\":\"end\",\"run_id\":\"%s\",\"epoch\":%d,"
            "\"status\":\"error\",\"error\":%s}",
            get(line, "run_id"), get_int(line, "epoch", 0), error);
    }
    return error != NULL;
}

/* failed: that of hello, or NULL. */
static void say_ready(json_object *graphs, json_object *failed, int slots)
{
    json_object *reports;

    import_graphs(graphs, failed);
    reports = describe_graphs(graphs, failed);
    say("{\"type\":\"ready\",\"graphs\":%s,\"slots\":%d,"
        "\"runtime\":{\"language\":\"c\"}}",
        json_object_to_json_string_ext(reports, JSON_C_TO_STRING_PLAIN), slots);
    json_object_put(reports);
}

#endif

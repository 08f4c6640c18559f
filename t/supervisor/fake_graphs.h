/* SPDX-License-Identifier: Apache-2.0 */
/* Members of JSON objects, and the graphs that the fake runner reports. */
#ifndef FAKE_GRAPHS_H
#define FAKE_GRAPHS_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

static const char *get(json_object *object, const char *key)
{
    json_object *value = NULL;

    if (object != NULL) {
        json_object_object_get_ex(object, key, &value);
    }
    return json_object_get_string(value);
}

static int get_int(json_object *object, const char *key, int fallback)
{
    json_object *value = NULL;

    return json_object_object_get_ex(object, key, &value)
        ? json_object_get_int(value)
        : fallback;
}

/* The report about a graph: the member `ready` of its definition, and
 * `pad` bytes of schemas. */
static json_object *describe_graph(json_object *graph)
{
    json_object *report = NULL;
    json_object *schemas = json_object_new_object();
    char *pad = calloc(1, (size_t)get_int(graph, "pad", 0) + 1);

    if (json_object_object_get_ex(graph, "ready", &report)) {
        report = json_object_get(report);
    }
    else {
        report = json_object_new_object();
    }
    if (get_int(graph, "pad", 0) > 0) {
        memset(pad, 'x', (size_t)get_int(graph, "pad", 0));
        json_object_object_add(schemas, "pad", json_object_new_string(pad));
        json_object_object_add(report, "schemas", schemas);
    }
    else {
        json_object_put(schemas);
    }
    free(pad);
    return report;
}

/* The member `start` of a graph; NULL: none has it. */
static const char *get_start(json_object *graphs)
{
    const char *start = NULL;

    json_object_object_foreach(graphs, key, graph)
    {
        if (key != NULL && get(graph, "start") != NULL) {
            start = get(graph, "start");
        }
    }
    return start;
}

/* Whether this runner creates the file; a definition names one at most. */
static int is_first(const char *path)
{
    static int answer = -1;

    if (answer < 0) {
        answer = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644) >= 0;
    }
    return answer;
}

/* A graph with `first`, a path, is reported only by the runner that creates the
 * file, one with `others` only by all others; with `absent` by none. */
static int is_reported(json_object *graph)
{
    const char *first = get(graph, "first");
    const char *others = get(graph, "others");

    return get(graph, "absent") == NULL && (first == NULL || is_first(first))
        && (others == NULL || !is_first(others));
}

/* With `extra`, a number, so many graphs that hello does not name. */
static json_object *describe_graphs(json_object *graphs, json_object *failed)
{
    json_object *reports = json_object_new_object();
    int extra = 0;

    json_object_object_foreach(graphs, key, graph)
    {
        extra += get_int(graph, "extra", 0);
        if (is_reported(graph)) {
            json_object *report = describe_graph(graph);
            json_object *error = NULL;

            if (failed != NULL
                && json_object_object_get_ex(failed, key, &error)) {
                json_object_object_add(report, "error", json_object_get(error));
            }
            json_object_object_add(reports, key, report);
        }
    }
    for (int i = 0; i < extra; i++) {
        char name[32];

        snprintf(name, sizeof(name), "extra%d", i);
        json_object_object_add(reports, name, json_object_new_object());
    }
    return reports;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The graphs as the runner reports them; see report.h. */
#include "report.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#include "../../core/json.h"
#include "command.h"
#include "manifest.h"
#include "../base/output.h"
#include "python.h"

/* How many names of one schema the summary has, and how many bytes of each:
 * they are the application's. */
#define SUMMARY_NAMES 12
#define SUMMARY_BYTES 40

/* The report is the last line: libraries may write to standard output too. */
static json_object *parse_report(char *text, apr_pool_t *pool)
{
    size_t length = strlen(text);
    json_object *report = NULL;
    agent_error_t *err;
    const char *line;

    while (length > 0 && text[length - 1] == '\n') {
        text[--length] = '\0';
    }
    line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    if (agent_json_parse(&report, line, strlen(line), &err, pool)
        != APR_SUCCESS) {
        return NULL;
    }
    return agent_json_get(report, "graphs");
}

/* The graph that was being imported when the program ended, by the last line in
 * which it says so; NULL: none. Its name is that of langgraph.json, since the
 * application may write such lines too. */
static const char *find_importing(const ctl_build_t *build, const char *text)
{
    static const char start[] = "{\"type\":\"importing\"";
    json_object *message = NULL;
    const char *last = NULL;
    const char *name;
    agent_error_t *err;

    for (const char *line = text; line != NULL;) {
        if (strncmp(line, start, sizeof(start) - 1) == 0) {
            last = line;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    if (last == NULL
        || agent_json_parse(&message, last, strcspn(last, "\n"), &err,
                            build->pool)
            != APR_SUCCESS) {
        return NULL;
    }
    name = agent_json_string(message, "graph_id", NULL);
    return name != NULL
            && agent_json_get(ctl_manifest_get(&build->manifest, "graphs"),
                              name)
                != NULL
        ? name
        : NULL;
}

/* The application writes the report, and may name other graphs. */
static const char *find_path(const ctl_build_t *build, const char *name)
{
    json_object *graphs = ctl_manifest_get(&build->manifest, "graphs");
    json_object *graph = agent_json_get(graphs, name);

    if (graph == NULL) {
        return "not in langgraph.json";
    }
    return json_object_is_type(graph, json_type_object)
        ? agent_json_string(graph, "path", "?")
        : json_object_get_string(graph);
}

static void print_schemas(json_object *schemas, apr_pool_t *pool)
{
    if (!json_object_is_type(schemas, json_type_object)) {
        return;
    }
    json_object_object_foreach(schemas, name, schema)
    {
        if (schema != NULL) {
            ctl_print("    %s %s", name, agent_json_print(schema, pool));
        }
    }
}

/* Cuts between characters; in pool. */
static const char *shorten(const char *name, apr_pool_t *pool)
{
    size_t length = SUMMARY_BYTES;

    if (strlen(name) <= length) {
        return name;
    }
    while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80) {
        length--;
    }
    return apr_psprintf(pool, "%.*s...", (int)length, name);
}

/* Returns "input a, b"; NULL for a schema without properties. */
static const char *summarize(json_object *schemas, const char *member,
                             const char *title, apr_pool_t *pool)
{
    json_object *schema = agent_json_get(schemas, member);
    json_object *properties = agent_json_get(schema, "properties");
    const char *text = title;
    int count = 0;

    if (!json_object_is_type(properties, json_type_object)
        || json_object_object_length(properties) == 0) {
        return NULL;
    }
    /* Bounded: SUMMARY_NAMES. */
    json_object_object_foreach(properties, name, property)
    {
        if (count < SUMMARY_NAMES) {
            text = apr_pstrcat(pool, text, count > 0 ? ", " : " ",
                               shorten(name, pool), NULL);
        }
        count++;
    }
    return count <= SUMMARY_NAMES
        ? text
        : apr_psprintf(pool, "%s and %d more", text, count - SUMMARY_NAMES);
}

/* The schemas of a graph are many KB. */
static void print_summary(json_object *schemas, apr_pool_t *pool)
{
    static const char *const parts[][2] = {{"input_schema", "input"},
                                           {"output_schema", "output"},
                                           {"context_schema", "context"}};
    const char *line = NULL;

    /* Bounded: three parts. */
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const char *part = summarize(schemas, parts[i][0], parts[i][1], pool);

        if (part != NULL) {
            line = line != NULL ? apr_pstrcat(pool, line, "; ", part, NULL)
                                : part;
        }
    }
    if (line != NULL) {
        ctl_print("    %s", line);
    }
}

/* Returns false for a graph that failed. */
static bool print_graph(const ctl_build_t *build, const char *name,
                        json_object *report)
{
    json_object *error = agent_json_get(report, "error");
    const char *description = agent_json_string(report, "description", NULL);

    if (error != NULL) {
        ctl_error("graph %s (%s): %s: %s", name, find_path(build, name),
                  agent_json_string(error, "error", "Error"),
                  agent_json_string(error, "message", ""));
        return false;
    }
    ctl_print("graph %s (%s)%s%s", name, find_path(build, name),
              description != NULL ? ": " : "",
              description != NULL ? description : "");
    if (build->options.prints_schemas) {
        print_schemas(agent_json_get(report, "schemas"), build->pool);
    }
    else {
        print_summary(agent_json_get(report, "schemas"), build->pool);
    }
    return true;
}

static const char *get_runner(const ctl_build_t *build)
{
    return apr_pstrcat(
        build->pool, build->options.runners,
        build->application.is_node ? "/node/main.mjs" : "/python", NULL);
}

bool ctl_report_has_runner(const ctl_build_t *build)
{
    const char *runner = get_runner(build);

    if (access(runner, R_OK) == 0) {
        return true;
    }
    ctl_error("%s: %s: give --runners FOLDER, where mod_agent's runners are",
              runner, strerror(errno));
    return false;
}

bool ctl_report_graphs(const ctl_build_t *build)
{
    const char *importing;
    const char *const argv[] = {build->application.is_node ? build->node
                                                           : ctl_python_program,
                                get_runner(build), "--check", NULL};
    json_object *graphs;
    char *text;
    bool done;
    int status;

    ctl_step("Importing the graphs");
    ctl_command_limit_memory(build->options.memory);
    status = ctl_command_read(&text, argv, build->options.timeout_sec, false,
                              build->pool);
    importing = find_importing(build, text);
    graphs = status >= 0 ? parse_report(text, build->pool) : NULL;
    if (!json_object_is_type(graphs, json_type_object)) {
        if (importing != NULL) {
            ctl_error("graph %s (%s): its import did not end (status %d; at "
                      "most %d s and %" APR_INT64_T_FMT " MB, see --timeout "
                      "and --memory)",
                      importing, find_path(build, importing), status,
                      build->options.timeout_sec, build->options.memory >> 20);
        }
        else {
            ctl_error("the runner reported no graphs (status %d)", status);
        }
        return false;
    }
    done = status == 0;
    json_object_object_foreach(graphs, name, report)
    {
        done = print_graph(build, name, report) && done;
    }
    return done;
}

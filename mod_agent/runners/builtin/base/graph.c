/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of a graph, and its description for `ready`. */
#include "graph.h"

#include <string.h>

#include <apr_strings.h>

#include "value.h"

const runner_tool_t *runner_graph_find_tool(const runner_graph_t *graph,
                                            const char *name)
{
    for (int i = 0; i < graph->tools->nelts; i++) {
        runner_tool_t *tool = APR_ARRAY_IDX(graph->tools, i, runner_tool_t *);

        if (strcmp(tool->name, name) == 0) {
            return tool;
        }
    }
    return NULL;
}

const char *runner_graph_list_tools(const runner_graph_t *graph,
                                    apr_pool_t *pool)
{
    const char *names = "";

    /* Bounded: the tools of the configuration. */
    for (int i = 0; i < graph->tools->nelts; i++) {
        names = apr_pstrcat(
            pool, names, i == 0 ? "" : ", ",
            APR_ARRAY_IDX(graph->tools, i, runner_tool_t *)->name, NULL);
    }
    return names;
}

static json_object *make_schema(const char *type)
{
    return runner_value_add_text(json_object_new_object(), "type", type);
}

/* JSON schema of {messages: [..]}. */
static json_object *describe_state(const char *title)
{
    json_object *schema = make_schema("object");
    json_object *list = make_schema("array");

    runner_value_add(list, "items", make_schema("object"));
    runner_value_add_text(schema, "title", title);
    runner_value_add(schema, "properties", runner_value_wrap("messages", list));
    runner_value_add(schema, "required", runner_value_list_text("messages"));
    return schema;
}

json_object *runner_graph_describe_schemas(void)
{
    json_object *schemas = json_object_new_object();

    runner_value_add(schemas, "input_schema", describe_state("Input"));
    runner_value_add(schemas, "output_schema", describe_state("Output"));
    runner_value_add(schemas, "state_schema", describe_state("State"));
    runner_value_add(schemas, "config_schema", make_schema("object"));
    runner_value_add(schemas, "context_schema", make_schema("object"));
    return schemas;
}

static json_object *describe_node(const char *name)
{
    bool is_end = name[0] == '_';
    json_object *node = json_object_new_object();

    runner_value_add_text(node, "id", name);
    runner_value_add_text(node, "type", is_end ? "schema" : "runnable");
    runner_value_add(
        node, "data",
        is_end ? json_object_new_string(name)
               : runner_value_wrap("name", json_object_new_string(name)));
    return node;
}

static json_object *describe_edge(const char *source, const char *target,
                                  bool is_conditional)
{
    json_object *edge = json_object_new_object();

    runner_value_add_text(edge, "source", source);
    runner_value_add_text(edge, "target", target);
    return runner_value_add_bool(edge, "conditional", is_conditional);
}

json_object *runner_graph_describe_drawing(const runner_graph_t *graph)
{
    json_object *nodes = runner_value_list_of(describe_node("__start__"));
    json_object *edges = runner_value_list_of(
        describe_edge("__start__", "agent", false));

    json_object_array_add(nodes, describe_node("agent"));
    if (graph->tools->nelts > 0) {
        json_object_array_add(nodes, describe_node("tools"));
        json_object_array_add(edges, describe_edge("agent", "tools", true));
        json_object_array_add(edges, describe_edge("tools", "agent", false));
    }
    json_object_array_add(nodes, describe_node("__end__"));
    json_object_array_add(
        edges, describe_edge("agent", "__end__", graph->tools->nelts > 0));
    return runner_value_add(runner_value_wrap("nodes", nodes), "edges", edges);
}

json_object *runner_graph_describe(const runner_graph_t *graph)
{
    json_object *description = json_object_new_object();

    runner_value_add(description, "schemas", runner_graph_describe_schemas());
    runner_value_add_bool(description, "has_subgraphs", false);
    return runner_value_add(description, "drawing",
                            runner_graph_describe_drawing(graph));
}

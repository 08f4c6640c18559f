/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of the state by clients, as LangGraph's update_state applies them. */
#include "update.h"

#include <string.h>

#include "change.h"
#include "checkpoint.h"
#include "core/json.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/lazy.h"

/* The node that would execute after one that wrote the state. */
static runner_node_t follow(runner_run_t *run, runner_node_t node)
{
    json_object *messages = agent_json_get(run->values, "messages");
    size_t count = json_object_array_length(messages);
    json_object *message;

    if (node != RUNNER_NODE_AGENT) {
        return RUNNER_NODE_AGENT;
    }
    if (count == 0) {
        return RUNNER_NODE_NONE;
    }
    message = runner_lazy_open(json_object_array_get_idx(messages, count - 1),
                               run->pool);
    return runner_value_count(agent_json_get(message, "tool_calls")) > 0
            || runner_value_count(agent_json_get(message, "invalid_tool_calls"))
                > 0
        ? RUNNER_NODE_TOOLS
        : RUNNER_NODE_NONE;
}

/* as_node, or the node that wrote the state last. */
static apr_status_t read_node(runner_node_t *node, runner_run_t *run,
                              const char *name, runner_problem_t **problem)
{
    if (name == NULL) {
        *node = run->next == RUNNER_NODE_NONE && run->checkpoint_id[0] != '\0'
            ? RUNNER_NODE_AGENT
            : runner_change_guess_node(run);
        return APR_SUCCESS;
    }
    *node = runner_node_find(name);
    return *node != RUNNER_NODE_NONE
        ? APR_SUCCESS
        : runner_problem_set(problem, run->pool, RUNNER_INVALID_INPUT,
                             "as_node: graph %s has the nodes agent, tools and "
                             "__start__, and no \"%s\".",
                             run->graph->name, name);
}

static void save(runner_run_t *run, runner_node_t node, json_object *values)
{
    runner_checkpoint_save(run, "update",
                           values != NULL
                               ? runner_value_wrap(runner_node_name(node),
                                                   runner_value_share(values))
                               : NULL);
}

/* Ends the thread's work: no node is next. */
static apr_status_t clear_next(runner_run_t *run, json_object *values,
                               runner_problem_t **problem)
{
    if (values != NULL) {
        return runner_problem_set(problem, run->pool, RUNNER_INVALID_INPUT,
                                  "as_node: __end__ takes no values.");
    }
    run->next = RUNNER_NODE_NONE;
    save(run, RUNNER_NODE_NONE, NULL);
    return APR_SUCCESS;
}

apr_status_t runner_update_apply(runner_run_t *run, runner_problem_t **problem)
{
    json_object *arguments = agent_json_get(run->start, "arguments");
    json_object *values;
    const char *name = agent_json_string(arguments, "as_node", NULL);
    runner_change_t change = {NULL, NULL};
    runner_node_t node;

    if (strcmp(agent_json_string(run->start, "op", ""), "update") != 0) {
        return runner_problem_set(problem, run->pool, "UnknownOperation",
                                  "Built-in graphs have the operation update.");
    }
    if (runner_change_read_pairs(&values, agent_json_get(arguments, "values"),
                                 problem, run->pool)
        != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (name != NULL && strcmp(name, "__end__") == 0) {
        return clear_next(run, values, problem);
    }
    if (read_node(&node, run, name, problem) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (values != NULL) {
        if (runner_change_read(&change, run, values, problem) != APR_SUCCESS) {
            return APR_EGENERAL;
        }
        runner_change_apply(run, &change);
    }
    /* Without values and a node, the state is copied. */
    if (values != NULL || name != NULL) {
        run->last = node;
        run->next = follow(run, node);
    }
    save(run, node, values);
    return APR_SUCCESS;
}

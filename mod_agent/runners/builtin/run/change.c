/* SPDX-License-Identifier: Apache-2.0 */
/* Applying updates of clients to the messages of the state. */
#include "change.h"

#include <string.h>

#include "core/json.h"
#include "difference.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/message.h"
#include "runners/builtin/message/reducer.h"

/* Lines nest the input a few levels deeper, and have at most AGENT_SCAN_DEPTH
 * levels. */
#define INPUT_DEPTH_MAX 110

/* Adds the messages of a pair after those of the pairs before it: the reducer
 * applies them one by one. */
static void add_messages(json_object *update, json_object *given)
{
    json_object *list = agent_json_get(update, "messages");

    if (list == NULL) {
        list = runner_value_list();
        runner_value_add(update, "messages", list);
    }
    if (!json_object_is_type(given, json_type_array)) {
        json_object_array_add(list, runner_value_share(given));
        return;
    }
    for (size_t i = 0; i < json_object_array_length(given); i++) {
        json_object_array_add(
            list, runner_value_share(json_object_array_get_idx(given, i)));
    }
}

apr_status_t runner_change_read_pairs(json_object **update, json_object *given,
                                      runner_problem_t **problem,
                                      apr_pool_t *pool)
{
    *update = given;
    if (!json_object_is_type(given, json_type_array)) {
        return APR_SUCCESS;
    }
    *update = agent_json_own(json_object_new_object(), pool);
    for (size_t i = 0; i < json_object_array_length(given); i++) {
        json_object *pair = json_object_array_get_idx(given, i);
        const char *channel;
        json_object *value;

        if (runner_value_count(pair) != 2
            || !json_object_is_type(json_object_array_get_idx(pair, 0),
                                    json_type_string)) {
            return runner_problem_set(
                problem, pool, RUNNER_INVALID_INPUT,
                "Element %d of the values is not a pair [channel, value].",
                (int)i);
        }
        channel = runner_value_item_text(pair, 0);
        value = json_object_array_get_idx(pair, 1);
        if (strcmp(channel, "messages") == 0) {
            add_messages(*update, value);
        }
        else {
            runner_value_add(*update, channel, runner_value_share(value));
        }
    }
    return APR_SUCCESS;
}

apr_status_t runner_change_read(runner_change_t *change, runner_run_t *run,
                                json_object *update, runner_problem_t **problem)
{
    json_object *given = agent_json_get(update, "messages");
    json_object *list;

    if (runner_value_depth(update) > INPUT_DEPTH_MAX) {
        return runner_problem_set(problem, run->pool, RUNNER_INVALID_INPUT,
                                  "The input is nested deeper than %d levels.",
                                  INPUT_DEPTH_MAX);
    }
    if (!json_object_is_type(update, json_type_object)) {
        return runner_problem_set(
            problem, run->pool, RUNNER_INVALID_INPUT,
            "The input of graph %s is an object like {\"messages\": "
            "[{\"role\": \"user\", \"content\": \"..\"}]}.",
            run->graph->name);
    }
    given = given ? given : agent_json_own(runner_value_list(), run->pool);
    list = agent_json_get(run->values, "messages");
    if (runner_reducer_only_appends(given)) {
        run->is_checked = run->is_checked || runner_reducer_is_complete(list);
        if (run->is_checked) {
            return runner_reducer_read(&change->added, given, problem,
                                       run->pool);
        }
    }
    return runner_reducer_apply(&change->merged, list, given, problem,
                                run->pool);
}

void runner_change_apply(runner_run_t *run, const runner_change_t *change)
{
    if (change->merged != NULL) {
        runner_difference_replace(run, change->merged);
        run->is_checked = true;
        return;
    }
    for (size_t i = 0; i < json_object_array_length(change->added); i++) {
        json_object_array_add(
            agent_json_get(run->values, "messages"),
            runner_value_share(json_object_array_get_idx(change->added, i)));
    }
    json_object_put(change->added);
}

runner_node_t runner_change_guess_node(runner_run_t *run)
{
    json_object *messages = agent_json_get(run->values, "messages");
    size_t count = json_object_array_length(messages);

    if (run->next == RUNNER_NODE_TOOLS) {
        return RUNNER_NODE_AGENT;
    }
    return count > 0
            && runner_message_is(json_object_array_get_idx(messages, count - 1),
                                 "tool")
        ? RUNNER_NODE_TOOLS
        : RUNNER_NODE_START;
}

apr_status_t runner_change_read_goto(runner_node_t *node, json_object *given,
                                     runner_problem_t **problem,
                                     apr_pool_t *pool)
{
    const char *name;

    if (runner_value_count(given) == 1) {
        given = json_object_array_get_idx(given, 0);
    }
    name = json_object_is_type(given, json_type_string)
        ? json_object_get_string(given)
        : agent_json_string(given, "node", "");
    *node = runner_node_find(name);
    if (strcmp(name, "__end__") == 0
        || (*node != RUNNER_NODE_NONE && *node != RUNNER_NODE_START)) {
        return APR_SUCCESS;
    }
    return runner_problem_set(problem, pool, RUNNER_INVALID_INPUT,
                              "command/goto: a built-in graph goes to one of "
                              "agent, tools and __end__.");
}

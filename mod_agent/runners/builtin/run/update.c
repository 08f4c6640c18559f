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

/* One update of a superstep. */
typedef struct update_t {
    const char *as_node;
    /* Borrowed from the call; NULL for none. */
    json_object *values;
    json_object *target;
} update_t;

static json_object *get_superstep(const runner_run_t *run)
{
    json_object *steps = agent_json_get(agent_json_get(run->start, "arguments"),
                                        "supersteps");

    return json_object_is_type(steps, json_type_array)
        ? json_object_array_get_idx(steps, run->supersteps)
        : NULL;
}

bool runner_update_has_more(const runner_run_t *run)
{
    return run->supersteps > 0 && get_superstep(run) != NULL;
}

/* The values are those of a command, if it is given. */
static apr_status_t read_update(update_t *update, runner_run_t *run,
                                json_object *given, runner_problem_t **problem)
{
    json_object *command = agent_json_get(given, "command");
    json_object *values = agent_json_get(given, "values");

    if (command != NULL && values != NULL) {
        return runner_problem_set(problem, run->pool, RUNNER_INVALID_INPUT,
                                  "command: an update has values or a "
                                  "command.");
    }
    if (command != NULL) {
        values = agent_json_get(command, "update");
    }
    update->target = agent_json_get(command, "goto");
    update->as_node = agent_json_string(given, "as_node", NULL);
    return runner_change_read_pairs(&update->values, values, problem,
                                    run->pool);
}

/* Takes the reference of writes. */
static apr_status_t save(runner_run_t *run, const char *source,
                         json_object *writes)
{
    runner_checkpoint_save(run, source, writes);
    return APR_SUCCESS;
}

/* Ends the thread's work: no node is next. */
static apr_status_t clear_next(runner_run_t *run, const update_t *update,
                               runner_problem_t **problem)
{
    if (update->values != NULL) {
        return runner_problem_set(problem, run->pool, RUNNER_INVALID_INPUT,
                                  "as_node: __end__ takes no values.");
    }
    run->next = RUNNER_NODE_NONE;
    return save(run, "update", NULL);
}

static apr_status_t copy_state(runner_run_t *run, const update_t *update,
                               runner_problem_t **problem)
{
    return save(run, "fork", NULL);
}

/* The input before it is applied, as at the beginning of a run. */
static apr_status_t save_input(runner_run_t *run, const update_t *update,
                               runner_problem_t **problem)
{
    run->next = RUNNER_NODE_START;
    return save(
        run, "input",
        runner_value_wrap("__start__", runner_value_share(update->values)));
}

typedef struct special_t {
    const char *as_node;
    apr_status_t (*apply)(runner_run_t *run, const update_t *update,
                          runner_problem_t **problem);
} special_t;

/* Not nodes of the graph. */
static const special_t specials[] = {{"__end__", clear_next},
                                     {"__copy__", copy_state},
                                     {"__input__", save_input}};

static const special_t *find_special(const update_t *update)
{
    for (size_t i = 0; i < sizeof(specials) / sizeof(*specials); i++) {
        if (update->as_node != NULL
            && strcmp(update->as_node, specials[i].as_node) == 0) {
            return &specials[i];
        }
    }
    return NULL;
}

/* Applies an update of a node, and adds its values to writes. */
static apr_status_t apply_update(runner_run_t *run, const update_t *update,
                                 json_object *writes,
                                 runner_problem_t **problem)
{
    runner_change_t change = {NULL, NULL};
    runner_node_t node;

    /* Until the superstep is saved. */
    run->is_at_checkpoint = false;
    if (read_node(&node, run, update->as_node, problem) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (update->values != NULL) {
        if (runner_change_read(&change, run, update->values, problem)
            != APR_SUCCESS) {
            return APR_EGENERAL;
        }
        runner_change_apply(run, &change);
        runner_value_add(writes, runner_node_name(node),
                         runner_value_share(update->values));
    }
    /* Without values and a node, the state is copied. */
    if (update->values != NULL || update->as_node != NULL) {
        run->last = node;
        run->next = follow(run, node);
    }
    return update->target == NULL
        ? APR_SUCCESS
        : runner_change_read_goto(&run->next, update->target, problem,
                                  run->pool);
}

/* Takes the reference of writes. */
static apr_status_t apply_updates(runner_run_t *run, json_object *superstep,
                                  json_object *writes,
                                  runner_problem_t **problem)
{
    size_t count = json_object_array_length(superstep);
    update_t update = {NULL, NULL, NULL};

    agent_json_own(writes, run->scratch);
    for (size_t i = 0; i < count; i++) {
        const special_t *special;

        if (read_update(&update, run, json_object_array_get_idx(superstep, i),
                        problem)
            != APR_SUCCESS) {
            return APR_EGENERAL;
        }
        special = find_special(&update);
        if (special != NULL && count == 1) {
            return special->apply(run, &update, problem);
        }
        if (special != NULL) {
            return runner_problem_set(problem, run->pool, RUNNER_INVALID_INPUT,
                                      "as_node: %s is the only update of its "
                                      "superstep.",
                                      update.as_node);
        }
        if (apply_update(run, &update, writes, problem) != APR_SUCCESS) {
            return APR_EGENERAL;
        }
    }
    return save(run, "update",
                json_object_object_length(writes) > 0
                    ? runner_value_share(writes)
                    : NULL);
}

apr_status_t runner_update_apply(runner_run_t *run, runner_problem_t **problem)
{
    json_object *superstep = get_superstep(run);

    if (runner_value_count(superstep) == 0) {
        return runner_problem_set(problem, run->pool, RUNNER_INVALID_INPUT,
                                  "supersteps: a superstep is an array of "
                                  "updates that is not empty.");
    }
    run->supersteps++;
    return apply_updates(run, superstep, json_object_new_object(), problem);
}

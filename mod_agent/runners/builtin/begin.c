/* SPDX-License-Identifier: Apache-2.0 */
/* Reading `start` and applying its input; see begin.h and run.h. */
#include "begin.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "message.h"
#include "stream.h"
#include "value.h"

/* Before the input of a thread's first run. */
#define STEP_NONE (-2)
/* The input is repeated a few levels deep inside a line, which has a limit of
 * its own (AGENT_SCAN_DEPTH). */
#define INPUT_DEPTH_MAX 110

typedef struct mode_word_t {
    const char *name;
    unsigned bit;
} mode_word_t;

static const mode_word_t mode_words[] = {
    {"values", RUNNER_MODE_VALUES},
    {"updates", RUNNER_MODE_UPDATES},
    {"messages", RUNNER_MODE_MESSAGES},
    {"messages-tuple", RUNNER_MODE_MESSAGES_TUPLE},
    {"tasks", RUNNER_MODE_TASKS},
    {"checkpoints", RUNNER_MODE_CHECKPOINTS},
    {"debug", RUNNER_MODE_DEBUG},
};

/* Modes that a built-in graph has nothing to say in (custom, events) are not
 * in the table. */
static unsigned find_mode(const char *name)
{
    for (size_t i = 0; i < sizeof(mode_words) / sizeof(mode_words[0]); i++) {
        if (strcmp(mode_words[i].name, name) == 0) {
            return mode_words[i].bit;
        }
    }
    return 0;
}

static runner_node_t find_node(const char *name)
{
    for (runner_node_t node = RUNNER_NODE_START; node <= RUNNER_NODE_TOOLS;
         node++) {
        if (strcmp(runner_node_name(node), name) == 0) {
            return node;
        }
    }
    return RUNNER_NODE_NONE;
}

/* The element as a text; "" when it is none. */
static const char *get_text(json_object *list, size_t i)
{
    json_object *item = json_object_array_get_idx(list, i);

    return json_object_is_type(item, json_type_string)
        ? json_object_get_string(item)
        : "";
}

static unsigned read_modes(json_object *list)
{
    unsigned modes = 0;

    if (json_object_is_type(list, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(list); i++) {
            modes |= find_mode(get_text(list, i));
        }
    }
    return modes;
}

/* "*" or an array of names as bits; the start node is no breakpoint. */
static unsigned read_breakpoints(json_object *given)
{
    unsigned bits = 0;

    if (json_object_is_type(given, json_type_string)) {
        return (1U << RUNNER_NODE_AGENT) | (1U << RUNNER_NODE_TOOLS);
    }
    if (json_object_is_type(given, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(given); i++) {
            runner_node_t node = find_node(get_text(given, i));

            if (node == RUNNER_NODE_AGENT || node == RUNNER_NODE_TOOLS) {
                bits |= 1U << node;
            }
        }
    }
    return bits;
}

static int64_t read_steps(json_object *start, const runner_graph_t *graph)
{
    int64_t steps = graph != NULL ? graph->max_steps : 0;
    int64_t asked = agent_json_integer(agent_json_get(start, "config"),
                                       "recursion_limit", steps);

    return asked > 0 && asked < steps ? asked : steps;
}

apr_status_t runner_run_create(runner_run_t **out, json_object *start,
                               runner_wire_t *wire, runner_http_t *http,
                               const runner_graph_t *graph, const char **reason,
                               apr_pool_t *pool)
{
    runner_run_t *run = apr_pcalloc(pool, sizeof(*run));

    *out = run;
    if (!agent_uuid_parse(run->run_id, agent_json_string(start, "run_id", NULL))
        || !agent_uuid_parse(run->thread_id,
                             agent_json_string(start, "thread_id", NULL))) {
        *reason = "start without a run_id or thread_id that is a UUID";
        return APR_EGENERAL;
    }
    if (!json_object_is_type(agent_json_get(start, "epoch"), json_type_int)) {
        *reason = "start without an epoch";
        return APR_EGENERAL;
    }
    APR_RING_ELEM_INIT(run, link);
    run->pool = pool;
    apr_pool_create(&run->scratch, pool);
    run->wire = wire;
    run->http = http;
    run->graph = graph;
    run->start = start;
    run->epoch = agent_json_integer(start, "epoch", 0);
    run->attempt = agent_json_integer(start, "attempt", 1);
    run->modes = read_modes(agent_json_get(start, "stream_modes"));
    run->interrupt_before = read_breakpoints(
        agent_json_get(start, "interrupt_before"));
    run->interrupt_after = read_breakpoints(
        agent_json_get(start, "interrupt_after"));
    run->steps_left = read_steps(start, graph);
    run->step = STEP_NONE;
    return APR_SUCCESS;
}

/* The thread's state as `start` gives it; `messages` is made if missing. */
static apr_status_t load_values(runner_run_t *run, runner_problem_t **problem)
{
    json_object *given = agent_json_get(run->start, "values");
    json_object *messages;

    run->values = agent_json_own(json_object_new_object(), run->pool);
    if (json_object_is_type(given, json_type_object)) {
        json_object_object_foreach(given, key, value)
        {
            runner_value_add(run->values, key, runner_value_share(value));
        }
    }
    messages = agent_json_get(run->values, "messages");
    if (messages == NULL) {
        runner_value_add(run->values, "messages", runner_value_list());
    }
    else if (!json_object_is_type(messages, json_type_array)) {
        return runner_problem_set(problem, run->pool, RUNNER_INVALID_INPUT,
                                  "The thread's state was made by another "
                                  "graph: its messages are no list.");
    }
    return APR_SUCCESS;
}

/*
 * The messages of the state with those of update in them; one reference. An
 * update without messages changes nothing.
 */
static apr_status_t merge_messages(json_object **merged, runner_run_t *run,
                                   json_object *update,
                                   runner_problem_t **problem)
{
    json_object *given = agent_json_get(update, "messages");

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
    return runner_messages_add(
        merged, agent_json_get(run->values, "messages"),
        given ? given : agent_json_own(runner_value_list(), run->pool), problem,
        run->pool);
}

static apr_status_t apply_input(runner_run_t *run, json_object *input,
                                runner_problem_t **problem)
{
    json_object *merged;
    apr_status_t rv = merge_messages(&merged, run, input, problem);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    run->next = RUNNER_NODE_START;
    runner_stream_checkpoint(
        run, "input",
        runner_value_wrap("__start__", runner_value_share(input)));
    runner_value_add(run->values, "messages", merged);
    run->last = RUNNER_NODE_START;
    run->next = RUNNER_NODE_AGENT;
    runner_stream_checkpoint(run, "loop", NULL);
    return APR_SUCCESS;
}

/* update of a command: an object, or pairs [[channel, value], ..]. */
static json_object *read_update(json_object *command, apr_pool_t *pool)
{
    json_object *given = agent_json_get(command, "update");
    json_object *update;

    if (!json_object_is_type(given, json_type_array)) {
        return given;
    }
    update = agent_json_own(json_object_new_object(), pool);
    for (size_t i = 0; i < json_object_array_length(given); i++) {
        json_object *pair = json_object_array_get_idx(given, i);

        if (json_object_is_type(pair, json_type_array)
            && json_object_array_length(pair) == 2) {
            runner_value_add(
                update, get_text(pair, 0),
                runner_value_share(json_object_array_get_idx(pair, 1)));
        }
    }
    return update;
}

/* goto of a command: one node, by name or as {node}, also as an array of one.
 */
static apr_status_t read_goto(runner_node_t *node, json_object *given,
                              runner_problem_t **problem, apr_pool_t *pool)
{
    const char *name;

    if (json_object_is_type(given, json_type_array)
        && json_object_array_length(given) == 1) {
        given = json_object_array_get_idx(given, 0);
    }
    name = json_object_is_type(given, json_type_string)
        ? json_object_get_string(given)
        : agent_json_string(given, "node", "");
    *node = find_node(name);
    if (strcmp(name, "__end__") == 0
        || (*node != RUNNER_NODE_NONE && *node != RUNNER_NODE_START)) {
        return APR_SUCCESS;
    }
    return runner_problem_set(problem, pool, RUNNER_INVALID_INPUT,
                              "command/goto: a built-in graph goes to one of "
                              "agent, tools and __end__.");
}

/* A command changes the state or the way, then the run goes on. What it
 * resumes with has no reader here: built-in graphs stop only at breakpoints. */
static apr_status_t apply_command(runner_run_t *run, json_object *command,
                                  runner_problem_t **problem)
{
    json_object *update = read_update(command, run->pool);
    json_object *target = agent_json_get(command, "goto");
    json_object *merged;

    if (target != NULL
        && read_goto(&run->next, target, problem, run->pool) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (update == NULL && target == NULL) {
        return APR_SUCCESS;
    }
    if (update != NULL) {
        if (merge_messages(&merged, run, update, problem) != APR_SUCCESS) {
            return APR_EGENERAL;
        }
        runner_value_add(run->values, "messages", merged);
    }
    runner_stream_checkpoint(
        run, "loop",
        update ? runner_value_wrap("__start__", runner_value_share(update))
               : NULL);
    return APR_SUCCESS;
}

/* The node that wrote the checkpoint which has next as its next one. */
static runner_node_t guess_last(runner_run_t *run)
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

static apr_status_t read_next(runner_run_t *run, json_object *next,
                              runner_problem_t **problem)
{
    if (!json_object_is_type(next, json_type_array)
        || json_object_array_length(next) == 0) {
        return APR_SUCCESS;
    }
    run->next = find_node(get_text(next, 0));
    if (run->next == RUNNER_NODE_NONE) {
        return runner_problem_set(problem, run->pool, RUNNER_INVALID_INPUT,
                                  "The thread stopped before the node \"%s\", "
                                  "which graph %s does not have.",
                                  get_text(next, 0), run->graph->name);
    }
    return APR_SUCCESS;
}

static apr_status_t load_checkpoint(runner_run_t *run, json_object *checkpoint,
                                    runner_problem_t **problem)
{
    agent_uuid_parse(run->checkpoint_id,
                     agent_json_string(checkpoint, "checkpoint_id", NULL));
    run->step = agent_json_integer(checkpoint, "step", STEP_NONE);
    return read_next(run, agent_json_get(checkpoint, "next"), problem);
}

/*
 * Whether a client continues after a breakpoint, rather than the supervisor
 * after a lost runner: the breakpoint must hold the second time only for the
 * latter. When it is not known who wrote the checkpoint, stopping once more is
 * the safe mistake.
 */
static bool is_client_resuming(const runner_run_t *run, json_object *checkpoint)
{
    const char *writer = agent_json_string(checkpoint, "run_id", NULL);

    return writer != NULL ? strcmp(writer, run->run_id) != 0
                          : run->attempt <= 1;
}

static apr_status_t continue_run(runner_run_t *run, json_object *checkpoint,
                                 runner_problem_t **problem)
{
    json_object *command = agent_json_get(run->start, "command");

    if (run->checkpoint_id[0] == '\0' && command == NULL) {
        return runner_problem_set(problem, run->pool, "EmptyInputError",
                                  "Received no input for __start__: give the "
                                  "run an input, the thread has nothing to "
                                  "continue with.");
    }
    if (run->next == RUNNER_NODE_START) {
        /* Only the checkpoint of the input itself has this as its next. */
        run->next = RUNNER_NODE_AGENT;
    }
    run->last = guess_last(run);
    run->is_resuming = is_client_resuming(run, checkpoint);
    if (command != NULL) {
        return apply_command(run, command, problem);
    }
    runner_stream_values(run);
    return APR_SUCCESS;
}

apr_status_t runner_begin_state(runner_run_t *run, runner_problem_t **problem)
{
    json_object *input = agent_json_get(run->start, "input");
    json_object *checkpoint = agent_json_get(run->start, "checkpoint");

    if (run->graph == NULL) {
        return runner_problem_set(
            problem, run->pool, "GraphNotFound",
            "This runner has no graph \"%s\".",
            agent_json_string(run->start, "graph_id", ""));
    }
    if (load_values(run, problem) != APR_SUCCESS
        || (checkpoint != NULL
            && load_checkpoint(run, checkpoint, problem) != APR_SUCCESS
            && input == NULL)) {
        return APR_EGENERAL;
    }
    if (input != NULL) {
        return apply_input(run, input, problem);
    }
    return continue_run(run, checkpoint, problem);
}

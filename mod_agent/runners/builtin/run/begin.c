/* SPDX-License-Identifier: Apache-2.0 */
/* Applying the input of a run to the thread's state. */
#include "begin.h"

#include <string.h>

#include "change.h"
#include "checkpoint.h"
#include "core/json.h"
#include "describe.h"
#include "difference.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/message.h"
#include "runners/builtin/message/lazy.h"
#include "stream.h"
#include "update.h"

/* 2^53: exact in every JSON reader. */
#define STEP_MAX INT64_C(9007199254740992)

/* Adds `messages` to the state if it is missing. */
static apr_status_t check_values(runner_run_t *run, runner_problem_t **problem)
{
    json_object *messages = agent_json_get(run->values, "messages");

    if (messages == NULL) {
        runner_value_add(run->values, "messages", runner_value_list());
    }
    else if (!json_object_is_type(messages, json_type_array)) {
        return runner_problem_set(problem, run->pool, RUNNER_INVALID_INPUT,
                                  "The thread's state was made by another "
                                  "graph: its messages are not a list.");
    }
    return APR_SUCCESS;
}

/* Refuses a state saved by an application: a built-in graph would continue its
 * values but not its records, so the application's next run would start from
 * before this one. */
static apr_status_t check_format(runner_run_t *run, json_object *checkpoint,
                                 runner_problem_t **problem)
{
    if (agent_json_string(checkpoint, "format", NULL) != NULL) {
        return runner_problem_set(problem, run->pool, "ForeignStateError",
                                  "an application has saved the state of the "
                                  "thread, which no built-in graph can "
                                  "continue");
    }
    return APR_SUCCESS;
}

/* is_saved: an earlier attempt has saved the first of the two checkpoints. */
static apr_status_t apply_input(runner_run_t *run, json_object *input,
                                bool is_saved, runner_problem_t **problem)
{
    runner_change_t change = {NULL, NULL};
    apr_status_t rv = runner_change_read(&change, run, input, problem);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    run->next = RUNNER_NODE_START;
    if (!is_saved) {
        runner_checkpoint_save(
            run, "input",
            runner_value_wrap("__start__", runner_value_share(input)));
    }
    runner_change_apply(run, &change);
    run->last = RUNNER_NODE_START;
    run->next = RUNNER_NODE_AGENT;
    runner_checkpoint_save(run, "loop", NULL);
    return APR_SUCCESS;
}

static apr_status_t refuse_missing_input(runner_run_t *run,
                                         runner_problem_t **problem)
{
    return runner_problem_set(problem, run->pool, "EmptyInputError",
                              "The checkpoint is from before its input was "
                              "applied: give the run that input.");
}

/* Whether the text has the form of the ids of interrupts in the libraries. */
static bool is_interrupt_id(const char *text)
{
    return strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32;
}

/* Of a command with strict_resume, as the libraries check it: a value continues
 * at a breakpoint, and answers by id are refused, since no interrupt waits. */
static apr_status_t check_answers(runner_run_t *run, json_object *answers,
                                  runner_problem_t **problem)
{
    const char *first = NULL;

    if (!json_object_is_type(answers, json_type_object)) {
        return APR_SUCCESS;
    }
    json_object_object_foreach(answers, id, answer)
    {
        (void)answer;
        if (!is_interrupt_id(id)) {
            return APR_SUCCESS;
        }
        if (first == NULL || strcmp(id, first) < 0) {
            first = id;
        }
    }
    return first == NULL
        ? runner_problem_set(problem, run->pool, "UnknownInterruptError",
                             "The resume map names no interrupt")
        : runner_problem_set(problem, run->pool, "UnknownInterruptError",
                             "Unknown or already-consumed interrupt: %s",
                             first);
}

/* Applies `update` and `goto` of a command. `resume` is ignored: built-in
 * graphs stop only at breakpoints, which take no value. */
static apr_status_t apply_command(runner_run_t *run, json_object *command,
                                  runner_problem_t **problem)
{
    json_object *update;
    json_object *target = agent_json_get(command, "goto");
    runner_change_t change = {NULL, NULL};

    if (json_object_get_boolean(agent_json_get(run->start, "strict_resume"))
        && check_answers(run, agent_json_get(command, "resume"), problem)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (runner_change_read_pairs(&update, agent_json_get(command, "update"),
                                 problem, run->pool)
        != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (target != NULL
        && runner_change_read_goto(&run->next, target, problem, run->pool)
            != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (run->next == RUNNER_NODE_START) {
        return refuse_missing_input(run, problem);
    }
    if (update == NULL && target == NULL) {
        return APR_SUCCESS;
    }
    if (update != NULL) {
        if (runner_change_read(&change, run, update, problem) != APR_SUCCESS) {
            return APR_EGENERAL;
        }
        runner_change_apply(run, &change);
    }
    runner_checkpoint_save(
        run, "input",
        update ? runner_value_wrap("__start__", runner_value_share(update))
               : NULL);
    return APR_SUCCESS;
}

static apr_status_t read_next(runner_run_t *run, json_object *next,
                              runner_problem_t **problem)
{
    if (runner_value_count(next) == 0) {
        return APR_SUCCESS;
    }
    run->next = runner_node_find(runner_value_item_text(next, 0));
    if (run->next == RUNNER_NODE_NONE) {
        return runner_problem_set(problem, run->pool, RUNNER_INVALID_INPUT,
                                  "The thread stopped before the node \"%s\", "
                                  "which graph %s does not have.",
                                  runner_value_item_text(next, 0),
                                  run->graph->name);
    }
    return APR_SUCCESS;
}

static apr_status_t load_checkpoint(runner_run_t *run, json_object *checkpoint,
                                    runner_problem_t **problem)
{
    int64_t step;

    agent_uuid_parse(run->checkpoint_id,
                     agent_json_string(checkpoint, "checkpoint_id", NULL));
    run->is_at_checkpoint = run->checkpoint_id[0] != '\0';
    step = agent_json_integer(checkpoint, "step", RUNNER_STEP_NONE);
    run->step = step < RUNNER_STEP_NONE ? RUNNER_STEP_NONE
        : step > STEP_MAX               ? STEP_MAX
                                        : step;
    return read_next(run, agent_json_get(checkpoint, "next"), problem);
}

/* Whether the checkpoint is that of a command, before the next node. */
static bool is_of_command(const runner_run_t *run, json_object *checkpoint)
{
    return run->next != RUNNER_NODE_START
        && strcmp(agent_json_string(checkpoint, "source", ""), "input") == 0;
}

/*
 * Whether a client continues the thread, and passes the breakpoint. When the
 * supervisor restarts this run after its runner was lost or drained, the run
 * stops at the breakpoint, unless its command has passed it. When the writer of
 * the checkpoint is unknown, only a first attempt counts as a client's.
 */
static bool is_client_resuming(const runner_run_t *run, json_object *checkpoint)
{
    const char *writer = agent_json_string(checkpoint, "run_id", NULL);

    if (writer == NULL) {
        return run->attempt <= 1 && run->epoch <= 1;
    }
    return strcmp(writer, run->run_id) != 0 || is_of_command(run, checkpoint);
}

/* Whether a message is the partial answer of a cancelled run
 * (RUNNER_ANSWER_CANCELLED). */
static bool is_cancelled_answer(json_object *message, apr_pool_t *pool)
{
    json_object *metadata = agent_json_get(runner_lazy_open(message, pool),
                                           "response_metadata");

    return runner_message_is(message, "ai")
        && json_object_get_boolean(agent_json_get(metadata, "interrupted"));
}

/* When a drain of the server has interrupted this run during an answer, removes
 * the partial answer: the restarted run calls the model again. */
static void remove_cancelled_answer(runner_run_t *run)
{
    json_object *messages = agent_json_get(run->values, "messages");
    size_t count = json_object_array_length(messages);

    if (run->next == RUNNER_NODE_NONE && count > 0
        && is_cancelled_answer(json_object_array_get_idx(messages, count - 1),
                               run->pool)) {
        runner_difference_remove_last(run);
        run->is_at_checkpoint = false;
        run->next = RUNNER_NODE_AGENT;
    }
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
    run->is_resuming = is_client_resuming(run, checkpoint);
    if (!run->is_resuming) {
        remove_cancelled_answer(run);
    }
    run->last = runner_change_guess_node(run);
    if (command != NULL) {
        return apply_command(run, command, problem);
    }
    if (run->next == RUNNER_NODE_START) {
        return refuse_missing_input(run, problem);
    }
    runner_stream_values(run);
    return APR_SUCCESS;
}

/* Whether an earlier attempt was lost between the two checkpoints of the input.
 */
static bool is_input_saved(const runner_run_t *run, json_object *checkpoint)
{
    return run->next == RUNNER_NODE_START
        && !is_client_resuming(run, checkpoint);
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
    if (check_format(run, checkpoint, problem) != APR_SUCCESS
        || check_values(run, problem) != APR_SUCCESS
        || (checkpoint != NULL
            && load_checkpoint(run, checkpoint, problem) != APR_SUCCESS
            && input == NULL)) {
        return APR_EGENERAL;
    }
    if (run->is_call) {
        return strcmp(agent_json_string(run->start, "op", ""), "update") == 0
            ? runner_update_apply(run, problem)
            : runner_describe_answer(run, problem);
    }
    if (input != NULL) {
        return apply_input(run, input, is_input_saved(run, checkpoint),
                           problem);
    }
    return continue_run(run, checkpoint, problem);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The events of each stream mode (runners/PROTOCOL.md). */
#include "stream.h"

#include <inttypes.h>
#include <string.h>

#include "chunk.h"
#include "core/json.h"
#include "emit.h"
#include "metadata.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/message.h"
#include "trace.h"

/* The modes whose events carry metadata of messages. */
#define MESSAGE_MODES                                                          \
    (RUNNER_MODE_MESSAGES | RUNNER_MODE_MESSAGES_TUPLE | RUNNER_MODE_EVENTS)

void runner_stream_begin(runner_run_t *run)
{
    if (run->modes & RUNNER_MODE_EVENTS) {
        runner_trace_run_start(run);
        runner_emit_clear(run);
    }
}

void runner_stream_values(runner_run_t *run)
{
    runner_emit_values(run);
    runner_emit_clear(run);
}

static json_object *describe_task(runner_run_t *run, runner_node_t node)
{
    json_object *task = json_object_new_object();

    runner_value_add_text(task, "id", run->task_id);
    runner_value_add_text(task, "name", runner_node_name(node));
    runner_value_add(task, "input", runner_emit_state(run));
    runner_value_add(task, "triggers",
                     runner_metadata_triggers(node, run->scratch));
    return runner_value_add(task, "interrupts", runner_value_list());
}

void runner_stream_task(runner_run_t *run, runner_node_t node)
{
    runner_metadata_task_id(run, node, run->task_id);
    run->partial_size = 0;
    run->message_metadata = NULL;
    run->model_input = NULL;
    if (run->modes & MESSAGE_MODES) {
        run->message_metadata = agent_json_own(runner_metadata_model(run, node),
                                               run->node_pool);
    }
    if (run->modes & RUNNER_MODE_EVENTS) {
        runner_trace_node_start(run, node);
    }
    if (run->modes & RUNNER_MODE_TASKS) {
        runner_emit_event_with_state(run, "tasks", describe_task(run, node),
                                     "[\"input\"]");
    }
    if (run->modes & RUNNER_MODE_DEBUG) {
        runner_emit_debug(run, "task", describe_task(run, node),
                          "[\"payload\",\"input\"]");
    }
    runner_emit_clear(run);
}

static json_object *wrap_messages(json_object *messages)
{
    return runner_value_wrap("messages", runner_value_share(messages));
}

static json_object *describe_result(runner_run_t *run, runner_node_t node,
                                    json_object *messages, const char *error)
{
    json_object *task = json_object_new_object();

    runner_value_add_text(task, "id", run->task_id);
    runner_value_add_text(task, "name", runner_node_name(node));
    runner_value_add_text(task, "error", error);
    runner_value_add(task, "result", messages ? wrap_messages(messages) : NULL);
    return runner_value_add(task, "interrupts", runner_value_list());
}

static void send_metadata(runner_run_t *run, const char *message_id)
{
    runner_emit_event(
        run, "messages/metadata",
        runner_value_wrap(
            message_id,
            runner_value_wrap("metadata",
                              runner_value_share(run->message_metadata))));
}

static void send_tuple(runner_run_t *run, json_object *message)
{
    json_object *tuple = runner_value_list_of(message);

    json_object_array_add(tuple, runner_value_share(run->message_metadata));
    runner_emit_event(run, "messages", tuple);
}

/* The model's message has been streamed already; other messages have not. */
static void send_messages(runner_run_t *run, json_object *messages)
{
    for (size_t i = 0; i < json_object_array_length(messages); i++) {
        json_object *message = json_object_array_get_idx(messages, i);
        bool is_streamed = runner_message_is(message, "ai");

        if (run->modes & RUNNER_MODE_MESSAGES) {
            if (!is_streamed || run->partial_size == 0) {
                send_metadata(run, agent_json_string(message, "id", ""));
            }
            runner_emit_event(
                run, "messages/complete",
                runner_value_list_of(runner_value_share(message)));
        }
        if (run->modes & RUNNER_MODE_MESSAGES_TUPLE) {
            send_tuple(run,
                       is_streamed ? runner_chunk_last(message)
                                   : runner_value_share(message));
        }
    }
}

/* The end of a node, and of the model call in it. */
static void trace_result(runner_run_t *run, runner_node_t node,
                         json_object *messages)
{
    if (node == RUNNER_NODE_AGENT) {
        runner_trace_model_end(run, json_object_array_get_idx(messages, 0));
    }
    runner_trace_node_end(run, node, messages);
}

void runner_stream_task_result(runner_run_t *run, runner_node_t node,
                               json_object *messages, const char *error)
{
    if (messages != NULL) {
        if (run->modes & RUNNER_MODE_EVENTS) {
            trace_result(run, node, messages);
        }
        send_messages(run, messages);
        if (run->modes & RUNNER_MODE_UPDATES) {
            runner_emit_event(run, "updates",
                              runner_value_wrap(runner_node_name(node),
                                                wrap_messages(messages)));
        }
    }
    if (run->modes & RUNNER_MODE_TASKS) {
        runner_emit_event(run, "tasks",
                          describe_result(run, node, messages, error));
    }
    if (run->modes & RUNNER_MODE_DEBUG) {
        runner_emit_debug(run, "task_result",
                          describe_result(run, node, messages, error), NULL);
    }
    runner_emit_clear(run);
}

void runner_stream_call(runner_run_t *run)
{
    if (run->modes & RUNNER_MODE_EVENTS) {
        runner_trace_model_start(run);
        runner_emit_clear(run);
    }
}

/*
 * messages/partial repeats the whole message. It is sent when the message has
 * grown by 1/32, so that the bytes are linear in the length of the message, not
 * quadratic; messages/complete always has the whole.
 */
static void send_partial(runner_run_t *run)
{
    const runner_answer_t *answer = &run->call->answer;

    if (run->partial_size == 0) {
        send_metadata(run, answer->message_id);
    }
    else if (answer->size < run->partial_size + run->partial_size / 32) {
        return;
    }
    run->partial_size = answer->size + 1;
    runner_emit_event(run, "messages/partial",
                      runner_value_list_of(runner_answer_message(
                          answer, RUNNER_ANSWER_PREVIEW)));
}

void runner_stream_delta(runner_run_t *run, const runner_delta_t *delta)
{
    if (run->modes & RUNNER_MODE_MESSAGES) {
        send_partial(run);
    }
    if (run->modes & RUNNER_MODE_MESSAGES_TUPLE) {
        send_tuple(run, runner_chunk_make(&run->call->answer, delta));
    }
    if (run->modes & RUNNER_MODE_EVENTS) {
        runner_trace_model_chunk(run,
                                 runner_chunk_make(&run->call->answer, delta));
    }
    runner_emit_clear(run);
}

/* Takes the reference of value. */
static void send_tool(runner_run_t *run, const runner_job_t *job,
                      const char *event, const char *key, json_object *value)
{
    json_object *data = json_object_new_object();

    runner_value_add_text(data, "event", event);
    runner_value_add_text(data, "toolCallId", job->call_id);
    runner_value_add_text(data, "name", job->name);
    runner_value_add(data, key, value);
    runner_emit_event(run, "tools", data);
}

static void send_tool_change(runner_run_t *run, const runner_job_t *job)
{
    if (!job->is_done) {
        send_tool(run, job, "on_tool_start", "input",
                  runner_value_share(job->args));
    }
    else if (job->has_failed) {
        send_tool(run, job, "on_tool_error", "error",
                  runner_value_share(agent_json_get(job->message, "content")));
    }
    else {
        send_tool(run, job, "on_tool_end", "output",
                  runner_value_share(job->message));
    }
}

void runner_stream_job(runner_run_t *run, const runner_job_t *job)
{
    if (run->modes & RUNNER_MODE_EVENTS) {
        runner_trace_tool(run, job);
    }
    if (run->modes & RUNNER_MODE_TOOLS) {
        send_tool_change(run, job);
    }
    runner_emit_clear(run);
}

void runner_stream_progress(runner_run_t *run, const runner_job_t *job,
                            json_object *data)
{
    if (run->modes & RUNNER_MODE_TOOLS) {
        send_tool(run, job, "on_tool_event", "data", runner_value_share(data));
    }
    runner_stream_custom(run, data);
}

void runner_stream_custom(runner_run_t *run, json_object *data)
{
    if (run->modes & RUNNER_MODE_CUSTOM) {
        runner_emit_event(run, "custom", runner_value_share(data));
    }
    runner_emit_clear(run);
}

void runner_stream_interrupt(runner_run_t *run)
{
    if (run->modes & RUNNER_MODE_UPDATES) {
        runner_emit_event(
            run, "updates",
            runner_value_wrap("__interrupt__", runner_value_list()));
    }
    if (run->modes & RUNNER_MODE_VALUES) {
        json_object *state = runner_emit_state(run);
        json_object *values = runner_value_copy(state);

        agent_json_own(state, run->scratch);
        runner_value_add(values, "__interrupt__", runner_value_list());
        runner_emit_event_with_state(run, "values", values, "[]");
    }
    runner_emit_clear(run);
}

void runner_stream_end(runner_run_t *run, const char *status,
                       const runner_problem_t *problem)
{
    json_object *error = NULL;

    if (strcmp(status, "success") == 0 && (run->modes & RUNNER_MODE_EVENTS)) {
        runner_trace_run_end(run);
    }
    if (problem != NULL) {
        error = json_object_new_object();
        runner_value_add_text(error, "error", problem->name);
        runner_value_add_text(error, "message", problem->message);
        agent_json_own(error, run->scratch);
        if (!run->is_call) {
            runner_emit_error(run, runner_value_share(error));
        }
    }
    runner_wire_begin(run->output.wire,
                      "{\"type\":\"end\",\"run_id\":\"%s\",\"epoch\":%" PRId64
                      ",\"status\":\"%s\",\"error\":",
                      run->run_id, run->epoch, status);
    runner_wire_add_json(run->output.wire, error);
    if (run->has_value && problem == NULL) {
        runner_wire_add(run->output.wire, ",\"value\":");
        runner_wire_add_json(run->output.wire, run->value);
    }
    runner_emit_end(run);
    runner_emit_clear(run);
}

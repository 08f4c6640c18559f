/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a run; see stream.h. PROTOCOL.md describes each of them. */
#include "stream.h"

#include <inttypes.h>
#include <string.h>

#include <apr_strings.h>

#include "chunk.h"
#include "core/json.h"
#include "core/uuid.h"
#include "emit.h"
#include "runners/builtin/message/message.h"
#include "metadata.h"
#include "trace.h"
#include "runners/builtin/base/value.h"

static void send_debug(runner_run_t *run, const char *type,
                       json_object *payload)
{
    json_object *data = json_object_new_object();
    char timestamp[APR_RFC822_DATE_LEN];
    apr_time_exp_t now;
    apr_size_t length;

    apr_time_exp_gmt(&now, apr_time_now());
    apr_strftime(timestamp, &length, sizeof(timestamp), "%Y-%m-%dT%H:%M:%S",
                 &now);
    runner_value_add_integer(data, "step", run->step);
    runner_value_add_text(data, "timestamp",
                          apr_psprintf(run->scratch, "%s.%06d+00:00", timestamp,
                                       (int)now.tm_usec));
    runner_value_add_text(data, "type", type);
    runner_value_add(data, "payload", payload);
    runner_emit_event(run, "debug", data);
}

/* The modes whose events tell where a message comes from. */
#define MESSAGE_MODES                                                          \
    (RUNNER_MODE_MESSAGES | RUNNER_MODE_MESSAGES_TUPLE | RUNNER_MODE_EVENTS)

/* The id of the task of a node after the run's last checkpoint. */
static void make_task_id(runner_run_t *run, runner_node_t node,
                         char out[AGENT_UUID_SIZE])
{
    char name[2 * AGENT_UUID_SIZE];

    apr_snprintf(name, sizeof(name), "%s:%s", run->checkpoint_id,
                 runner_node_name(node));
    agent_uuid_v5(out, name);
}

/* The tasks that follow the last checkpoint: the next node, if any. */
static json_object *describe_tasks(runner_run_t *run)
{
    json_object *task;
    char task_id[AGENT_UUID_SIZE];

    if (run->next == RUNNER_NODE_NONE) {
        return runner_value_list();
    }
    make_task_id(run, run->next, task_id);
    task = json_object_new_object();
    runner_value_add_text(task, "id", task_id);
    runner_value_add_text(task, "name", runner_node_name(run->next));
    runner_value_add(task, "path", runner_metadata_path(run->next));
    runner_value_add(task, "error", NULL);
    runner_value_add(task, "interrupts", runner_value_list());
    runner_value_add(task, "checkpoint", NULL);
    runner_value_add(task, "state", NULL);
    runner_value_add(task, "result", NULL);
    return runner_value_list_of(task);
}

static json_object *describe_next(runner_run_t *run)
{
    return run->next == RUNNER_NODE_NONE
        ? runner_value_list()
        : runner_value_list_text(runner_node_name(run->next));
}

/* {thread_id, checkpoint_ns, checkpoint_id}; null for no checkpoint. */
static json_object *describe_checkpoint_id(runner_run_t *run, const char *id)
{
    json_object *config;

    if (*id == '\0') {
        return NULL;
    }
    config = runner_value_add_text(json_object_new_object(), "thread_id",
                                   run->thread_id);
    runner_value_add_text(config, "checkpoint_ns", "");
    return runner_value_add_text(config, "checkpoint_id", id);
}

static json_object *describe_config(runner_run_t *run, const char *id)
{
    return *id == '\0'
        ? NULL
        : runner_value_wrap("configurable", describe_checkpoint_id(run, id));
}

/* The payload of checkpoints and debug events. */
static json_object *describe_checkpoint(runner_run_t *run,
                                        json_object *metadata)
{
    json_object *data = json_object_new_object();

    runner_value_add(data, "config", describe_config(run, run->checkpoint_id));
    runner_value_add(data, "parent_config",
                     describe_config(run, run->parent_id));
    runner_value_add(data, "values", runner_value_share(run->values));
    runner_value_add(data, "metadata", runner_value_share(metadata));
    runner_value_add(data, "next", describe_next(run));
    runner_value_add(data, "tasks", describe_tasks(run));
    runner_value_add(data, "checkpoint",
                     describe_checkpoint_id(run, run->checkpoint_id));
    return runner_value_add(data, "parent_checkpoint",
                            describe_checkpoint_id(run, run->parent_id));
}

static json_object *make_metadata(runner_run_t *run, const char *source,
                                  json_object *writes)
{
    json_object *metadata = json_object_new_object();

    runner_value_add_text(metadata, "source", source);
    runner_value_add_integer(metadata, "step", run->step);
    runner_value_add(metadata, "writes", writes);
    return runner_value_add(metadata, "parents", json_object_new_object());
}

static void send_checkpoint(runner_run_t *run, json_object *metadata)
{
    json_object *tasks = agent_json_own(describe_tasks(run), run->scratch);
    json_object *next = agent_json_own(describe_next(run), run->scratch);
    bool has_parent = run->parent_id[0] != '\0';
    const char *quote = has_parent ? "\"" : "";

    runner_wire_begin(run->wire,
                      "{\"type\":\"checkpoint\",\"run_id\":\"%s\","
                      "\"epoch\":%" PRId64 ",\"checkpoint_id\":\"%s\","
                      "\"parent\":%s%s%s,\"values\":",
                      run->run_id, run->epoch, run->checkpoint_id, quote,
                      has_parent ? run->parent_id : "null", quote);
    if (runner_emit_state(run) > RUNNER_STATE_MAX
        || run->weight > RUNNER_STATE_WEIGHT_MAX) {
        runner_wire_drop(run->wire);
        run->has_overflown = true;
        return;
    }
    runner_wire_add(run->wire, ",\"next\":");
    runner_wire_add_json(run->wire, next);
    runner_wire_add(run->wire, ",\"tasks\":");
    runner_wire_add_json(run->wire, tasks);
    runner_wire_add(run->wire, ",\"metadata\":");
    runner_wire_add_json(run->wire, metadata);
    runner_wire_add(run->wire, ",\"opaque\":null");
    runner_emit_end(run);
}

static int read_digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/*
 * Sets the time of a version 7 UUID (48 bits and 12 below them) to one tick
 * after that of previous.
 */
static void move_after(char id[AGENT_UUID_SIZE], const char *previous)
{
    static const char hex_digits[] = "0123456789abcdef";
    int carry = 1;

    memcpy(id, previous, 18);
    for (int i = 17; i >= 0 && carry > 0; i--) {
        int digit;

        /* The dashes and the version stand still. */
        if (id[i] == '-' || i == 14) {
            continue;
        }
        digit = read_digit(id[i]) + carry;
        carry = digit >> 4;
        id[i] = hex_digits[digit & 15];
    }
}

/* A clock that was set back must not put a checkpoint before its parent:
 * ids are how checkpoints are ordered. */
static void make_checkpoint_id(runner_run_t *run)
{
    char previous[AGENT_UUID_SIZE];

    memcpy(previous, run->checkpoint_id, sizeof(previous));
    agent_uuid_v7(run->checkpoint_id);
    if (previous[0] != '\0' && previous[14] == '7'
        && strcmp(run->checkpoint_id, previous) <= 0) {
        move_after(run->checkpoint_id, previous);
    }
    memcpy(run->parent_id, previous, sizeof(previous));
}

/* The state is not repeated: the event names the checkpoint. */
static void send_values(runner_run_t *run)
{
    if (run->modes & RUNNER_MODE_VALUES) {
        runner_emit_begin_event(run, "values");
        runner_wire_add(run->wire, ",\"checkpoint_id\":\"%s\"",
                        run->checkpoint_id);
        runner_emit_end(run);
    }
}

void runner_stream_checkpoint(runner_run_t *run, const char *source,
                              json_object *writes)
{
    json_object *metadata;

    run->step++;
    make_checkpoint_id(run);
    metadata = agent_json_own(make_metadata(run, source, writes), run->scratch);
    send_checkpoint(run, metadata);
    if (run->has_overflown) {
        /* Nothing may name a checkpoint that does not exist. */
        runner_emit_finish(run);
        return;
    }
    if (strcmp(source, "loop") == 0) {
        send_values(run);
    }
    if (run->modes & RUNNER_MODE_CHECKPOINTS) {
        runner_emit_event(run, "checkpoints",
                          describe_checkpoint(run, metadata));
    }
    if (run->modes & RUNNER_MODE_DEBUG) {
        send_debug(run, "checkpoint", describe_checkpoint(run, metadata));
    }
    runner_emit_finish(run);
}

void runner_stream_values(runner_run_t *run)
{
    send_values(run);
    runner_emit_finish(run);
}

static json_object *describe_task(runner_run_t *run, runner_node_t node)
{
    json_object *task = json_object_new_object();

    runner_value_add_text(task, "id", run->task_id);
    runner_value_add_text(task, "name", runner_node_name(node));
    runner_value_add(task, "input", runner_value_share(run->values));
    runner_value_add(task, "triggers",
                     runner_metadata_triggers(node, run->scratch));
    return runner_value_add(task, "interrupts", runner_value_list());
}

void runner_stream_task(runner_run_t *run, runner_node_t node)
{
    make_task_id(run, node, run->task_id);
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
        runner_emit_event(run, "tasks", describe_task(run, node));
    }
    if (run->modes & RUNNER_MODE_DEBUG) {
        send_debug(run, "task", describe_task(run, node));
    }
    runner_emit_finish(run);
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

/* Messages that did not stream are shown whole; one that did is completed. */
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

/* Tells of a node's end, and of that of the model which it has called. */
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
        send_debug(run, "task_result",
                   describe_result(run, node, messages, error));
    }
    runner_emit_finish(run);
}

/*
 * messages/partial repeats the whole message. It is sent when the message has
 * grown by a thirty-second part, so that a long one costs thirty times its size
 * and not its square; messages/complete always brings the rest.
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
                          answer, RUNNER_ANSWER_RUNNING)));
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
    runner_emit_finish(run);
}

void runner_stream_begin(runner_run_t *run)
{
    if (run->modes & RUNNER_MODE_EVENTS) {
        runner_trace_run_start(run);
        runner_emit_finish(run);
    }
}

void runner_stream_call(runner_run_t *run)
{
    if (run->modes & RUNNER_MODE_EVENTS) {
        runner_trace_model_start(run);
        runner_emit_finish(run);
    }
}

void runner_stream_job(runner_run_t *run, const runner_job_t *job)
{
    if (run->modes & RUNNER_MODE_EVENTS) {
        runner_trace_tool(run, job);
        runner_emit_finish(run);
    }
}

void runner_stream_custom(runner_run_t *run, json_object *data)
{
    if (run->modes & RUNNER_MODE_CUSTOM) {
        runner_emit_event(run, "custom", runner_value_share(data));
        runner_emit_finish(run);
    }
}

/* The graph has come to its end, or to a breakpoint. */
static void trace_end(runner_run_t *run)
{
    if (run->modes & RUNNER_MODE_EVENTS) {
        runner_trace_run_end(run);
    }
}

void runner_stream_interrupt(runner_run_t *run)
{
    if (run->modes & RUNNER_MODE_UPDATES) {
        runner_emit_event(
            run, "updates",
            runner_value_wrap("__interrupt__", runner_value_list()));
    }
    if (run->modes & RUNNER_MODE_VALUES) {
        json_object *values = runner_value_copy(run->values);

        runner_value_add(values, "__interrupt__", runner_value_list());
        runner_emit_event(run, "values", values);
    }
    trace_end(run);
    runner_emit_finish(run);
}

void runner_stream_end(runner_run_t *run, const char *status,
                       const runner_problem_t *problem)
{
    json_object *error = NULL;

    if (strcmp(status, "success") == 0) {
        trace_end(run);
    }
    if (problem != NULL) {
        error = json_object_new_object();
        runner_value_add_text(error, "error", problem->name);
        runner_value_add_text(error, "message", problem->message);
        runner_emit_event(run, "error", runner_value_share(error));
        agent_json_own(error, run->scratch);
    }
    runner_wire_begin(run->wire,
                      "{\"type\":\"end\",\"run_id\":\"%s\",\"epoch\":%" PRId64
                      ",\"status\":\"%s\",\"error\":",
                      run->run_id, run->epoch, status);
    runner_wire_add_json(run->wire, error);
    runner_emit_end(run);
    runner_emit_finish(run);
}

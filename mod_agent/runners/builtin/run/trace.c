/* SPDX-License-Identifier: Apache-2.0 */
/* Events of LangChain's event stream, version 2. */
#include "trace.h"

#include <apr_strings.h>

#include "chunk.h"
#include "core/json.h"
#include "emit.h"
#include "metadata.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/message.h"

/* The subject of an event: the graph, a node, or a call of a model or tool. */
typedef struct subject_t {
    const char *name;
    const char *id;
    /* 0 the graph, 1 a node, 2 a call. */
    int depth;
    /* One reference, which send_trace() takes. */
    json_object *metadata;
} subject_t;

static subject_t get_graph(runner_run_t *run)
{
    return (subject_t){run->graph->name, run->run_id, 0,
                       runner_metadata_run(run)};
}

static subject_t get_node(runner_run_t *run, runner_node_t node)
{
    return (subject_t){runner_node_name(node), run->task_id, 1,
                       runner_metadata_node(run, node)};
}

/* The id of a model call is that of its message. */
static subject_t get_model(runner_run_t *run)
{
    return (subject_t){run->graph->model.provider->name,
                       run->call->answer.message_id, 2,
                       runner_value_share(run->message_metadata)};
}

static json_object *describe_parents(const runner_run_t *run, int depth)
{
    json_object *parents = runner_value_list();

    if (depth > 0) {
        json_object_array_add(parents, runner_value_text(run->run_id));
    }
    if (depth > 1) {
        json_object_array_add(parents, runner_value_text(run->task_id));
    }
    return parents;
}

/* The tags of the level, then those of the run's config. */
static json_object *describe_tags(const runner_run_t *run, int depth)
{
    json_object *given = agent_json_get(agent_json_get(run->start, "config"),
                                        "tags");
    json_object *tags = runner_value_list();

    if (depth == 1) {
        json_object_array_add(
            tags,
            runner_value_text(apr_psprintf(
                run->scratch, "graph:step:%" APR_INT64_T_FMT, run->step + 1)));
    }
    else if (depth == 2) {
        json_object_array_add(tags, runner_value_text("seq:step:1"));
    }
    for (size_t i = 0; i < runner_value_count(given); i++) {
        json_object_array_add(
            tags, runner_value_share(json_object_array_get_idx(given, i)));
    }
    return tags;
}

/* Takes the references of the subject's metadata and of data. path: where the
 * event has the state; NULL for none. */
static void send_with_state(runner_run_t *run, const char *event,
                            subject_t subject, json_object *data,
                            const char *path)
{
    json_object *traced = json_object_new_object();

    runner_value_add_text(traced, "event", event);
    runner_value_add_text(traced, "name", subject.name);
    runner_value_add_text(traced, "run_id", subject.id);
    runner_value_add(traced, "parent_ids",
                     describe_parents(run, subject.depth));
    runner_value_add(traced, "tags", describe_tags(run, subject.depth));
    runner_value_add(traced, "metadata", subject.metadata);
    runner_value_add(traced, "data", data);
    if (path != NULL) {
        runner_emit_event_with_state(run, "events", traced, path);
    }
    else {
        runner_emit_event(run, "events", traced);
    }
}

static void send_trace(runner_run_t *run, const char *event, subject_t subject,
                       json_object *data)
{
    send_with_state(run, event, subject, data, NULL);
}

/* A command counts as the input. */
void runner_trace_run_start(runner_run_t *run)
{
    json_object *command = agent_json_get(run->start, "command");
    json_object *input = command ? command
                                 : agent_json_get(run->start, "input");

    send_trace(run, "on_chain_start", get_graph(run),
               runner_value_wrap("input", runner_value_share(input)));
}

void runner_trace_run_end(runner_run_t *run)
{
    send_with_state(run, "on_chain_end", get_graph(run),
                    runner_value_wrap("output", runner_emit_state(run)),
                    "[\"data\",\"output\"]");
}

void runner_trace_node_start(runner_run_t *run, runner_node_t node)
{
    send_with_state(run, "on_chain_start", get_node(run, node),
                    runner_value_wrap("input", runner_emit_state(run)),
                    "[\"data\",\"input\"]");
}

static json_object *wrap_messages(json_object *messages)
{
    return runner_value_wrap("messages", runner_value_share(messages));
}

void runner_trace_node_end(runner_run_t *run, runner_node_t node,
                           json_object *messages)
{
    json_object *data = runner_value_wrap("output", wrap_messages(messages));

    send_trace(run, "on_chain_stream", get_node(run, node),
               runner_value_wrap("chunk", wrap_messages(messages)));
    runner_value_add(data, "input", runner_emit_state(run));
    send_with_state(run, "on_chain_end", get_node(run, node), data,
                    "[\"data\",\"input\"]");
}

/* The model's input: a list of conversations, here of one. */
static json_object *describe_conversation(runner_run_t *run)
{
    json_object *given = run->call->messages;
    json_object *messages = runner_value_list();
    const char *prompt = run->graph->system_prompt;

    if (prompt != NULL) {
        json_object_array_add(
            messages,
            runner_message_new("system", runner_value_text(prompt), NULL));
    }
    for (size_t i = 0; i < json_object_array_length(given); i++) {
        json_object_array_add(
            messages, runner_value_share(json_object_array_get_idx(given, i)));
    }
    return runner_value_wrap("messages", runner_value_list_of(messages));
}

void runner_trace_model_start(runner_run_t *run)
{
    run->model_input = agent_json_own(describe_conversation(run),
                                      run->node_pool);
    send_trace(
        run, "on_chat_model_start", get_model(run),
        runner_value_wrap("input", runner_value_share(run->model_input)));
}

void runner_trace_model_chunk(runner_run_t *run, json_object *chunk)
{
    send_trace(run, "on_chat_model_stream", get_model(run),
               runner_value_wrap("chunk", chunk));
}

void runner_trace_model_end(runner_run_t *run, json_object *message)
{
    json_object *data = runner_value_wrap("output",
                                          runner_value_share(message));

    runner_trace_model_chunk(run, runner_chunk_last(message));
    runner_value_add(data, "input", runner_value_share(run->model_input));
    send_trace(run, "on_chat_model_end", get_model(run), data);
}

void runner_trace_tool(runner_run_t *run, const runner_job_t *job)
{
    json_object *data = json_object_new_object();
    char id[AGENT_UUID_SIZE];

    agent_uuid_v5(
        id, apr_pstrcat(run->scratch, run->task_id, ":", job->call_id, NULL));
    if (job->is_done) {
        runner_value_add(data, "output", runner_value_share(job->message));
    }
    runner_value_add(data, "input", runner_value_share(job->args));
    send_trace(run, job->is_done ? "on_tool_end" : "on_tool_start",
               (subject_t){job->name, id, 2,
                           runner_metadata_node(run, RUNNER_NODE_TOOLS)},
               data);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Building and sending checkpoints. */
#include "checkpoint.h"

#include <inttypes.h>
#include <string.h>

#include "core/json.h"
#include "difference.h"
#include "emit.h"
#include "metadata.h"
#include "runners/builtin/base/value.h"
#include "weight.h"

/* The tasks after the last checkpoint: that of the next node, if any. */
static json_object *describe_tasks(runner_run_t *run)
{
    json_object *task;
    char task_id[AGENT_UUID_SIZE];

    if (run->next == RUNNER_NODE_NONE) {
        return runner_value_list();
    }
    runner_metadata_task_id(run, run->next, task_id);
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

/* The payload of events of the modes checkpoints and debug. */
static json_object *describe_checkpoint(runner_run_t *run,
                                        json_object *metadata)
{
    json_object *data = json_object_new_object();

    runner_value_add(data, "config", describe_config(run, run->checkpoint_id));
    runner_value_add(data, "parent_config",
                     describe_config(run, run->parent_id));
    runner_value_add(data, "values", runner_emit_state(run));
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

    runner_wire_begin(run->output.wire,
                      "{\"type\":\"checkpoint\",\"run_id\":\"%s\","
                      "\"epoch\":%" PRId64 ",\"checkpoint_id\":\"%s\","
                      "\"parent\":%s%s%s,\"values\":",
                      run->run_id, run->epoch, run->checkpoint_id, quote,
                      has_parent ? run->parent_id : "null", quote);
    runner_difference_add(run, has_parent);
    if (run->text_size > RUNNER_STATE_MAX
        || run->tree_weight > RUNNER_STATE_WEIGHT_MAX) {
        runner_wire_drop(run->output.wire);
        run->is_too_large = true;
        return;
    }
    runner_wire_add(run->output.wire, ",\"next\":");
    runner_wire_add_json(run->output.wire, next);
    runner_wire_add(run->output.wire, ",\"tasks\":");
    runner_wire_add_json(run->output.wire, tasks);
    runner_wire_add(run->output.wire, ",\"metadata\":");
    runner_wire_add_json(run->output.wire, metadata);
    if (run->is_sync) {
        run->uncommitted = ++run->request_id;
        runner_wire_add(run->output.wire, ",\"ack\":%" PRId64,
                        run->uncommitted);
    }
    runner_emit_end(run);
}

static int read_digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* Sets the timestamp of a version 7 UUID (48 bits, and 12 bits of fraction) to
 * one tick after that of previous. */
static void move_after(char id[AGENT_UUID_SIZE], const char *previous)
{
    static const char hex_digits[] = "0123456789abcdef";
    int carry = 1;

    memcpy(id, previous, 18);
    for (int i = 17; i >= 0 && carry > 0; i--) {
        int digit;

        /* Not the dashes and the version. */
        if (id[i] == '-' || i == 14) {
            continue;
        }
        digit = read_digit(id[i]) + carry;
        carry = digit >> 4;
        id[i] = hex_digits[digit & 15];
    }
}

/* Checkpoints are ordered by id: one is greater than its parent's even after
 * the clock was set back. */
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

void runner_checkpoint_save(runner_run_t *run, const char *source,
                            json_object *writes)
{
    json_object *metadata;

    run->step++;
    run->is_at_checkpoint = true;
    run->has_saved = true;
    make_checkpoint_id(run);
    metadata = agent_json_own(make_metadata(run, source, writes), run->scratch);
    send_checkpoint(run, metadata);
    if (run->is_too_large) {
        /* No event may name a checkpoint that was not sent. */
        runner_emit_clear(run);
        return;
    }
    if (!run->is_call && run->next != RUNNER_NODE_START) {
        runner_emit_values(run);
    }
    if (run->modes & RUNNER_MODE_CHECKPOINTS) {
        runner_emit_event_with_state(run, "checkpoints",
                                     describe_checkpoint(run, metadata),
                                     "[\"values\"]");
    }
    if (run->modes & RUNNER_MODE_DEBUG) {
        runner_emit_debug(run, "checkpoint", describe_checkpoint(run, metadata),
                          "[\"payload\",\"values\"]");
    }
    runner_emit_clear(run);
}

void runner_checkpoint_report_task(runner_run_t *run, runner_node_t node,
                                   const char *error)
{
    json_object *task = agent_json_own(json_object_new_object(), run->scratch);

    runner_value_add_text(task, "id", run->task_id);
    runner_value_add_text(task, "name", runner_node_name(node));
    runner_value_add_text(task, "error", error);
    runner_value_add(task, "interrupts", runner_value_list());
    runner_wire_begin(run->output.wire,
                      "{\"type\":\"task\",\"run_id\":\"%s\",\"epoch\":%" PRId64
                      ",\"ns\":\"\",\"checkpoint_id\":\"%s\",\"task\":",
                      run->run_id, run->epoch, run->checkpoint_id);
    runner_wire_add_json(run->output.wire, task);
    runner_emit_end(run);
    runner_emit_clear(run);
}

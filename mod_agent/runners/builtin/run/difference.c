/* SPDX-License-Identifier: Apache-2.0 */
/* The state by difference to the last checkpoint. */
#include "difference.h"

#include <string.h>

#include "core/json.h"
#include "runners/builtin/base/value.h"
#include "weight.h"

/* Messages that are measured at once. */
#define MEASURED ((size_t)256)

static json_object *get_messages(const runner_run_t *run)
{
    return agent_json_get(run->values, "messages");
}

void runner_difference_begin(runner_run_t *run)
{
    run->kept = run->saved_count = runner_value_count(get_messages(run));
}

/* The number of leading elements that two arrays share. */
static size_t count_shared(json_object *list, json_object *other, size_t max)
{
    size_t count = 0;

    while (count < max
           && json_object_array_get_idx(list, count)
               == json_object_array_get_idx(other, count)) {
        count++;
    }
    return count;
}

/* The messages from that index on may be others now. */
static void set_kept(runner_run_t *run, size_t kept)
{
    run->kept = kept;
    if (run->tally.messages > kept) {
        memset(&run->tally, 0, sizeof(run->tally));
    }
}

void runner_difference_replace(runner_run_t *run, json_object *messages)
{
    json_object *old = get_messages(run);
    size_t length = json_object_array_length(messages);

    if (messages == old) {
        json_object_put(messages);
        return;
    }
    set_kept(
        run,
        count_shared(old, messages, run->kept < length ? run->kept : length));
    runner_value_add(run->values, "messages", messages);
}

void runner_difference_remove_last(runner_run_t *run)
{
    json_object *messages = get_messages(run);
    size_t last = json_object_array_length(messages) - 1;

    json_object_array_del_idx(messages, last, 1);
    set_kept(run, run->kept < last ? run->kept : last);
}

/* A new array of the elements from one index to another. */
static json_object *slice(json_object *list, size_t from, size_t to)
{
    json_object *part = json_object_new_array_ext(to > from ? (int)(to - from)
                                                            : 1);

    for (size_t i = from; i < to; i++) {
        json_object_array_add(
            part, runner_value_share(json_object_array_get_idx(list, i)));
    }
    return part;
}

/* Adds a value with these messages to the line, and what it takes to the run.
 */
static void add_value(runner_run_t *run, json_object *value,
                      json_object *messages)
{
    const agent_buffer_t *out = &run->output.wire->out;
    size_t length = runner_wire_add_json(run->output.wire, value);
    size_t weight = runner_value_weigh(
        agent_buffer_text(out) + agent_buffer_length(out) - length, length);

    run->text_size += length;
    run->tree_weight += weight;
    run->weight += weight - runner_weight_excess(messages);
}

/* The same without adding it to the line. */
static void measure_value(runner_run_t *run, json_object *value,
                          json_object *messages)
{
    agent_buffer_t *out = &run->output.wire->out;
    size_t length = agent_buffer_length(out);

    add_value(run, value, messages);
    agent_buffer_truncate(out, length);
}

/* Some of the messages of the last checkpoint were removed or replaced: counts
 * the rest of the state anew, in parts, since it may be longer than a line. */
static void measure_kept(runner_run_t *run, json_object *messages)
{
    json_object *values = runner_value_copy(run->values);
    json_object *none = runner_value_list();

    run->text_size = run->tree_weight = run->weight = 0;
    runner_value_add(values, "messages", runner_value_share(none));
    measure_value(run, values, none);
    json_object_put(values);
    json_object_put(none);
    for (size_t i = 0; i < run->kept; i += MEASURED) {
        json_object *part = slice(
            messages, i, i + MEASURED < run->kept ? i + MEASURED : run->kept);

        measure_value(run, part, part);
        json_object_put(part);
    }
}

static void add_list(runner_run_t *run, json_object *messages)
{
    size_t count = json_object_array_length(messages);
    json_object *items = slice(messages, run->kept, count);

    if (run->kept < run->saved_count) {
        measure_kept(run, messages);
    }
    runner_wire_add(run->output.wire, "{\"$list\":{\"keep\":%lu,\"items\":",
                    (unsigned long)run->kept);
    add_value(run, items, items);
    runner_wire_add(run->output.wire, "}}");
    json_object_put(items);
    run->kept = run->saved_count = count;
}

static void add_name(runner_run_t *run, const char *name)
{
    json_object *text = json_object_new_string(name);

    runner_wire_add_json(run->output.wire, text);
    runner_wire_add(run->output.wire, ":");
    json_object_put(text);
}

void runner_difference_add(runner_run_t *run, bool has_parent)
{
    const char *comma = "";

    run->text_size = run->state_size;
    run->weight = run->state_weight;
    runner_wire_add(run->output.wire, "{");
    json_object_object_foreach(run->values, name, value)
    {
        runner_wire_add(run->output.wire, "%s", comma);
        comma = ",";
        add_name(run, name);
        if (strcmp(name, "messages") == 0) {
            add_list(run, value);
        }
        else if (has_parent) {
            runner_wire_add(run->output.wire, "{\"$same\":true}");
        }
        else {
            runner_wire_add(run->output.wire, "{\"$value\":");
            runner_wire_add_json(run->output.wire, value);
            runner_wire_add(run->output.wire, "}");
        }
    }
    runner_wire_add(run->output.wire, "}");
    run->state_size = run->text_size;
    run->state_weight = run->weight;
}

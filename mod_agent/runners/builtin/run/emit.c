/* SPDX-License-Identifier: Apache-2.0 */
/* See emit.h. */
#include "emit.h"

#include <inttypes.h>

#include "core/json.h"
#include "output.h"
#include "runners/builtin/base/value.h"

void runner_emit_begin_event(runner_run_t *run, const char *name)
{
    runner_wire_begin(run->wire,
                      "{\"type\":\"event\",\"run_id\":\"%s\",\"epoch\":%" PRId64
                      ",\"event\":\"%s\"",
                      run->run_id, run->epoch, name);
}

void runner_emit_end(runner_run_t *run)
{
    runner_wire_add(run->wire, "}");
    if (runner_wire_end(run->wire) != APR_SUCCESS) {
        run->has_overflown = true;
        return;
    }
    runner_output_keep(run);
}

void runner_emit_event(runner_run_t *run, const char *name, json_object *data)
{
    agent_json_own(data, run->scratch);
    runner_emit_begin_event(run, name);
    runner_wire_add(run->wire, ",\"data\":");
    runner_wire_add_json(run->wire, data);
    runner_emit_end(run);
}

/* The text is the last one on the wire. A state that has hardly grown weighs
 * what it did. */
static void weigh_state(runner_run_t *run, size_t length)
{
    const runner_buffer_t *out = &run->wire->out;

    if (length > run->weighed_size + run->weighed_size / 16) {
        run->weight = runner_value_weigh(out->bytes + out->length - length,
                                         length);
        run->weighed_size = length;
    }
}

/* json-c keeps the text of what it prints as long as that lives: a copy is
 * printed, which goes at once. */
size_t runner_emit_state(runner_run_t *run)
{
    json_object *values = runner_value_copy(run->values);
    size_t length = runner_wire_add_json(run->wire, values);

    json_object_put(values);
    weigh_state(run, length);
    return length;
}

void runner_emit_finish(runner_run_t *run)
{
    apr_pool_clear(run->scratch);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the lines of a run. */
#include "emit.h"

#include <inttypes.h>

#include <apr_strings.h>

#include "core/json.h"
#include "runners/builtin/base/value.h"

void runner_emit_begin_event(runner_run_t *run, const char *name)
{
    runner_wire_begin(run->output.wire,
                      "{\"type\":\"event\",\"run_id\":\"%s\",\"epoch\":%" PRId64
                      ",\"event\":\"%s\"",
                      run->run_id, run->epoch, name);
}

static void end_line(runner_run_t *run, bool is_optional)
{
    runner_wire_add(run->output.wire, "}");
    if (runner_wire_end(run->output.wire) != APR_SUCCESS) {
        run->is_too_large = true;
        return;
    }
    runner_output_add(&run->output, is_optional);
}

void runner_emit_end(runner_run_t *run)
{
    end_line(run, false);
}

static void begin_data(runner_run_t *run, const char *name, json_object *data)
{
    agent_json_own(data, run->scratch);
    runner_emit_begin_event(run, name);
    runner_wire_add(run->output.wire, ",\"data\":");
    runner_wire_add_json(run->output.wire, data);
}

void runner_emit_event(runner_run_t *run, const char *name, json_object *data)
{
    begin_data(run, name, data);
    end_line(run, true);
}

json_object *runner_emit_state(runner_run_t *run)
{
    return run->is_at_checkpoint ? NULL : runner_value_share(run->values);
}

void runner_emit_event_with_state(runner_run_t *run, const char *name,
                                  json_object *data, const char *path)
{
    begin_data(run, name, data);
    if (run->is_at_checkpoint) {
        runner_wire_add(run->output.wire,
                        ",\"checkpoint_id\":\"%s\",\"path\":%s",
                        run->checkpoint_id, path);
    }
    end_line(run, true);
}

void runner_emit_error(runner_run_t *run, json_object *error)
{
    begin_data(run, "error", error);
    end_line(run, false);
}

void runner_emit_debug(runner_run_t *run, const char *type,
                       json_object *payload, const char *path)
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
    if (path != NULL) {
        runner_emit_event_with_state(run, "debug", data, path);
    }
    else {
        runner_emit_event(run, "debug", data);
    }
}

void runner_emit_values(runner_run_t *run)
{
    if (run->modes & RUNNER_MODE_VALUES) {
        runner_emit_begin_event(run, "values");
        runner_wire_add(run->output.wire, ",\"checkpoint_id\":\"%s\"",
                        run->checkpoint_id);
        runner_emit_end(run);
    }
}

void runner_emit_clear(runner_run_t *run)
{
    apr_pool_clear(run->scratch);
}

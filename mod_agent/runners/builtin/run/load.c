/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the state from which a run starts. */
#include "load.h"

#include <inttypes.h>
#include <string.h>

#include <apr_strings.h>

#include "core/clock.h"
#include "core/json.h"
#include "difference.h"
#include "runners/builtin/base/problem.h"
#include "runners/builtin/base/value.h"

static void finish(runner_run_t *run)
{
    runner_difference_begin(run);
    run->is_loaded = true;
    run->phase = RUNNER_PHASE_BEGIN;
    run->wake_at = 0;
}

bool runner_load_begin(runner_run_t *run)
{
    json_object *checkpoint = agent_json_get(run->start, "checkpoint");
    const char *id = agent_json_string(checkpoint, "checkpoint_id", "");

    if (*id != '\0' && runner_warm_take(run->warm, run, id)) {
        run->weight += run->state_weight;
        run->weight -= run->expected_weight;
        run->is_loaded = true;
        runner_difference_begin(run);
        return true;
    }
    run->values = agent_json_own(json_object_new_object(), run->pool);
    run->is_loaded = *id == '\0';
    if (!run->is_loaded) {
        run->phase = RUNNER_PHASE_LOAD;
        run->wake_at = AGENT_CLOCK_NEVER;
    }
    return run->is_loaded;
}

/* ---- requests ---- */

void runner_load_request(runner_run_t *run)
{
    const char *quote = run->cursor[0] != '\0' ? "\"" : "";

    run->request_id++;
    runner_wire_begin(
        run->output.wire,
        "{\"type\":\"request\",\"run_id\":\"%s\",\"epoch\":%" PRId64
        ",\"id\":%" PRId64 ",\"op\":\"state.get\","
        "\"cursor\":%s%s%s}",
        run->run_id, run->epoch, run->request_id, quote,
        run->cursor[0] != '\0' ? run->cursor : "null", quote);
    runner_wire_end(run->output.wire);
}

/* ---- replies ---- */

/* The value of a member of that name if it is the only one; NULL otherwise. */
static json_object *get_only(json_object *value, const char *name)
{
    return json_object_is_type(value, json_type_object)
            && json_object_object_length(value) == 1
        ? agent_json_get(value, name)
        : NULL;
}

/* Appends the elements of a part of a list. */
static bool append_items(runner_run_t *run, const char *name, json_object *part)
{
    json_object *items = agent_json_get(part, "items");
    json_object *list = agent_json_get(run->values, name);

    if (list == NULL) {
        list = runner_value_list();
        runner_value_add(run->values, name, list);
    }
    if (!json_object_is_type(items, json_type_array)
        || !json_object_is_type(list, json_type_array)
        || agent_json_integer(part, "keep", -1)
            != (int64_t)json_object_array_length(list)) {
        return false;
    }
    for (size_t i = 0; i < json_object_array_length(items); i++) {
        json_object_array_add(
            list, runner_value_share(json_object_array_get_idx(items, i)));
    }
    return true;
}

static bool add_values(runner_run_t *run, json_object *values)
{
    if (!json_object_is_type(values, json_type_object)) {
        return false;
    }
    json_object_object_foreach(values, name, value)
    {
        json_object *part = get_only(value, "$list");
        json_object *whole = get_only(value, "$value");

        if (part == NULL) {
            runner_value_add(run->values, name,
                             runner_value_share(whole ? whole : value));
        }
        else if (!append_items(run, name, part)) {
            return false;
        }
    }
    return true;
}

/* The weight of a line is that of its part; the rest is some hundred bytes. */
static void count_part(runner_run_t *run, runner_weight_t weight)
{
    run->state_weight += weight.line;
    run->state_size += weight.text;
    if (run->state_weight > run->expected_weight) {
        run->weight += run->state_weight - run->expected_weight;
        run->expected_weight = run->state_weight;
    }
    run->has_overflown = run->state_weight > RUNNER_STATE_WEIGHT_MAX;
}

static void finish_reading(runner_run_t *run)
{
    run->weight -= run->expected_weight - run->state_weight;
    run->tree_weight = run->state_weight;
    finish(run);
}

static void fail_load(runner_run_t *run, json_object *error)
{
    const char *code = agent_json_string(error, "code", "");

    runner_problem_set(&run->load_problem, run->pool,
                       strcmp(code, "state_too_large") == 0
                           ? "StateTooLargeError"
                           : "StateUnavailableError",
                       "%s", agent_json_string(error, "message", code));
    run->wake_at = 0;
}

const char *runner_load_take(runner_run_t *run, json_object *reply,
                             runner_weight_t weight)
{
    json_object *result = agent_json_get(reply, "result");
    const char *cursor = agent_json_string(reply, "cursor", "");

    if (run->phase != RUNNER_PHASE_LOAD || run->request_id == 0
        || agent_json_integer(reply, "id", -1) != run->request_id) {
        return "a reply without a request";
    }
    if (!json_object_get_boolean(agent_json_get(reply, "ok"))) {
        fail_load(run, agent_json_get(reply, "error"));
        return NULL;
    }
    if (!add_values(run, agent_json_get(result, "values"))
        || strlen(cursor) >= sizeof(run->cursor)) {
        return "a reply that is not a part of a state";
    }
    count_part(run, weight);
    apr_cpystrn(run->cursor, cursor, sizeof(run->cursor));
    if (run->has_overflown || *cursor == '\0') {
        finish_reading(run);
    }
    else {
        runner_load_request(run);
    }
    return NULL;
}

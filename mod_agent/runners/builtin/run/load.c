/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the state from which a run starts. */
#include "load.h"

#include <inttypes.h>
#include <string.h>

#include <apr_strings.h>

#include "core/clock.h"
#include "core/json.h"
#include "difference.h"
#include "part.h"
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

/* The weight of a line is that of its part; the rest is some hundred bytes. */
static void count_part(runner_run_t *run, runner_weight_t weight)
{
    run->state_weight += weight.line;
    run->state_size += weight.text;
    if (run->state_weight > run->expected_weight) {
        run->weight += run->state_weight - run->expected_weight;
        run->expected_weight = run->state_weight;
    }
    run->is_too_large = run->state_weight > RUNNER_STATE_WEIGHT_MAX;
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
    const char *cursor = agent_json_string(reply, "cursor", "");

    if (run->phase != RUNNER_PHASE_LOAD || run->request_id == 0
        || agent_json_integer(reply, "id", -1) != run->request_id) {
        return "a reply without a request";
    }
    if (!json_object_get_boolean(agent_json_get(reply, "ok"))) {
        fail_load(run, agent_json_get(reply, "error"));
        return NULL;
    }
    if (!runner_part_add(run, agent_json_get(reply, "result"))
        || strlen(cursor) >= sizeof(run->cursor)) {
        return "a reply that is not a part of a state";
    }
    count_part(run, weight);
    apr_cpystrn(run->cursor, cursor, sizeof(run->cursor));
    if (run->is_too_large || *cursor == '\0') {
        finish_reading(run);
    }
    else {
        runner_load_request(run);
    }
    return NULL;
}

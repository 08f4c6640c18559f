/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/run/ runners/builtin/base/ core/ */
/* OBJECTS: runners/builtin/message/ runners/builtin/model/ */
/* OBJECTS: runners/builtin/tool/ runners/builtin/io/ */
/* Replies to the requests of a run, a line each. */
#include "fuzz.h"

#include <string.h>

#include "core/json.h"
#include "runners/builtin/run/load.h"
#include "runners/builtin/run/part.h"

#define ID "01890000-0000-7000-8000-00000000000c"

static runner_run_t *make_run(apr_pool_t *pool)
{
    runner_run_t *run = apr_pcalloc(pool, sizeof(*run));
    runner_wire_t *wire = apr_pcalloc(pool, sizeof(*wire));

    agent_buffer_init(&wire->out, pool);
    run->pool = pool;
    run->graph = (const runner_graph_t *)"graph";
    run->warm = runner_warm_make(pool);
    run->output.wire = wire;
    run->expected_weight = 1000;
    run->weight = 1000;
    run->start = agent_json_own(
        json_tokener_parse("{\"checkpoint\":{\"checkpoint_id\":\"" ID "\"}}"),
        pool);
    memcpy(run->run_id, ID, sizeof(ID));
    memcpy(run->thread_id, ID, sizeof(ID));
    return run;
}

/* The state is an object, and what it takes is counted. */
static void check_run(const runner_run_t *run)
{
    must(json_object_is_type(run->values, json_type_object));
    must(run->weight >= run->state_weight);
    must(!run->is_too_large);
    must(run->is_loaded == (run->phase == RUNNER_PHASE_BEGIN));
}

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    runner_run_t *run = make_run(pool);
    const char *end = text + length;

    must(!runner_load_begin(run));
    runner_load_request(run);
    must(run->request_id == 1);
    while (text < end && run->load_problem == NULL) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t bytes = (size_t)((newline != NULL ? newline : end) - text);
        const char *copy = apr_pstrmemdup(pool, text, bytes);
        runner_weight_t weight;
        agent_error_t *err = NULL;
        json_object *line;

        if (runner_weight_estimate(&weight, copy, bytes, &err, pool)
                != APR_SUCCESS
            || runner_part_read_line(&line, copy, bytes, &err, pool)
                != APR_SUCCESS
            || runner_load_take(run, line, weight) != NULL) {
            return;
        }
        check_run(run);
        text = newline != NULL ? newline + 1 : end;
    }
}

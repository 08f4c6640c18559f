/* SPDX-License-Identifier: Apache-2.0 */
/* The call `describe` of built-in graphs, which are made from the
 * configuration alone: config and context change nothing. */
#include "describe.h"

#include <string.h>

#include "core/json.h"
#include "runners/builtin/base/value.h"

static apr_status_t answer(runner_run_t *run, json_object *value)
{
    run->value = agent_json_own(value, run->pool);
    run->has_value = true;
    return APR_SUCCESS;
}

/* Answers all kinds of the call alike: built-in graphs have no subgraphs. */
static apr_status_t describe(runner_run_t *run, runner_problem_t **problem)
{
    json_object *arguments = agent_json_get(run->start, "arguments");
    const char *what = agent_json_string(arguments, "what", "");

    if (strcmp(what, "schemas") == 0) {
        return answer(run, runner_graph_describe_schemas());
    }
    if (strcmp(what, "graph") == 0) {
        return answer(run, runner_graph_describe_drawing(run->graph));
    }
    if (strcmp(what, "subgraphs") == 0) {
        return answer(run, json_object_new_object());
    }
    return runner_problem_set(problem, run->pool, RUNNER_INVALID_INPUT,
                              "what: a graph has schemas, a graph and "
                              "subgraphs.");
}

apr_status_t runner_describe_answer(runner_run_t *run,
                                    runner_problem_t **problem)
{
    const char *op = agent_json_string(run->start, "op", "");

    if (strcmp(op, "describe") == 0) {
        return describe(run, problem);
    }
    return runner_problem_set(problem, run->pool, "UnknownOperationError",
                              "Built-in graphs have the operations update "
                              "and describe.");
}

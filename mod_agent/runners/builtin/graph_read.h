/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the definition of a graph in `hello` (runners/PROTOCOL.md). */
#ifndef AGENT_RUNNER_GRAPH_READ_H
#define AGENT_RUNNER_GRAPH_READ_H

#include "runners/builtin/base/graph.h"
#include "runners/builtin/base/problem.h"

/* Reads a graph into pool. APR_EGENERAL: this runner cannot execute it,
 * *problem is the reason. */
apr_status_t runner_graph_read(runner_graph_t **out, const char *name,
                               json_object *given, runner_problem_t **problem,
                               apr_pool_t *pool);

#endif

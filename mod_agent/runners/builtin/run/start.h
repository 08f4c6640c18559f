/* SPDX-License-Identifier: Apache-2.0 */
/* Creating a run from a `start` message (runners/PROTOCOL.md). */
#ifndef AGENT_RUNNER_START_H
#define AGENT_RUNNER_START_H

#include "state.h"

/*
 * Creates the run of a `start` message; start belongs to pool, graph may be
 * NULL. APR_EGENERAL: the message breaks the protocol, *reason is the
 * violation.
 */
apr_status_t runner_start_read(runner_run_t **out, json_object *start,
                               runner_wire_t *wire, runner_http_t *http,
                               const runner_graph_t *graph, const char **reason,
                               apr_pool_t *pool);

#endif

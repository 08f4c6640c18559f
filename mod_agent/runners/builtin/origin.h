/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where something that is streamed comes from: the metadata of messages and of
 * traced events. Functions that return an object give the caller one reference.
 */
#ifndef AGENT_RUNNER_ORIGIN_H
#define AGENT_RUNNER_ORIGIN_H

#include "run.h"

/* What the client gave the run as metadata, and which run it is. */
json_object *runner_origin_run(runner_run_t *run);

/* The same with the node that executes, and with the model that it calls. */
json_object *runner_origin_node(runner_run_t *run, runner_node_t node);
json_object *runner_origin_model(runner_run_t *run, runner_node_t node);

/* How a node was reached. */
json_object *runner_origin_path(runner_node_t node);
json_object *runner_origin_triggers(runner_node_t node, apr_pool_t *pool);

#endif

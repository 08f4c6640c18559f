/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata of streamed messages and events: which run, node and model they
 * come from. Functions that return an object give the caller one reference.
 */
#ifndef AGENT_RUNNER_METADATA_H
#define AGENT_RUNNER_METADATA_H

#include "state.h"

/* The client's metadata and the ids of the run. */
json_object *runner_metadata_run(runner_run_t *run);

/* The same and the node. */
json_object *runner_metadata_node(runner_run_t *run, runner_node_t node);
/* The same and the model of the graph. */
json_object *runner_metadata_model(runner_run_t *run, runner_node_t node);

/* A node's path in LangGraph's form: ["__pregel_pull", node]. */
json_object *runner_metadata_path(runner_node_t node);
/* A node's triggers in LangGraph's form: ["branch:to:node"]. */
json_object *runner_metadata_triggers(runner_node_t node, apr_pool_t *pool);

/* The id of a node's task after the run's last checkpoint: the same for the
 * same checkpoint and node. */
void runner_metadata_task_id(const runner_run_t *run, runner_node_t node,
                             char out[AGENT_UUID_SIZE]);

#endif

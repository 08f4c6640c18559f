/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metadata of streamed messages and events: which run, node and model they
 * come from. Functions that return an object give the caller one reference.
 */
#ifndef AGENT_RUNNER_METADATA_H
#define AGENT_RUNNER_METADATA_H

#include "state.h"

/* The most that a client's metadata and tags may take as JSON text; every
 * streamed message and event repeats them. */
#define RUNNER_METADATA_MAX ((size_t)16 * 1024)

/* Whether the run's metadata and tags are within RUNNER_METADATA_MAX. */
bool runner_metadata_is_short(const runner_run_t *run);

/* The client's metadata with the ids of the run. */
json_object *runner_metadata_run(runner_run_t *run);

/* The same with the node that executes; with that and the model it calls. */
json_object *runner_metadata_node(runner_run_t *run, runner_node_t node);
json_object *runner_metadata_model(runner_run_t *run, runner_node_t node);

/* LangGraph's path and triggers of a node. */
json_object *runner_metadata_path(runner_node_t node);
json_object *runner_metadata_triggers(runner_node_t node, apr_pool_t *pool);

/* The id of the task of a node after the run's last checkpoint. */
void runner_metadata_task_id(const runner_run_t *run, runner_node_t node,
                             char out[AGENT_UUID_SIZE]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where something that is streamed comes from: the metadata of messages and of
 * traced events. Functions that return an object give the caller one reference.
 */
#ifndef AGENT_RUNNER_METADATA_H
#define AGENT_RUNNER_METADATA_H

#include "run.h"

/* What a client's metadata and tags may have as JSON text: they are repeated
 * with every message and event that is streamed. */
#define RUNNER_METADATA_MAX ((size_t)16 * 1024)

/* Whether the run keeps to RUNNER_METADATA_MAX. */
bool runner_metadata_is_short(const runner_run_t *run);

/* What the client gave the run as metadata, and which run it is. */
json_object *runner_metadata_run(runner_run_t *run);

/* The same with the node that executes, and with the model that it calls. */
json_object *runner_metadata_node(runner_run_t *run, runner_node_t node);
json_object *runner_metadata_model(runner_run_t *run, runner_node_t node);

/* How a node was reached. */
json_object *runner_metadata_path(runner_node_t node);
json_object *runner_metadata_triggers(runner_node_t node, apr_pool_t *pool);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream mode `events`: what the graph, its nodes, models and tools do, as
 * LangChain's event stream (version 2) tells it. Nothing is told of what failed
 * or was cancelled before its end: the stream's `error` event does that.
 */
#ifndef AGENT_RUNNER_TRACE_H
#define AGENT_RUNNER_TRACE_H

#include "run.h"

/* The graph begins with what `start` gave it, and has come to its end. */
void runner_trace_run_start(runner_run_t *run);
void runner_trace_run_end(runner_run_t *run);

/* A node begins with the state, and has made messages. */
void runner_trace_node_start(runner_run_t *run, runner_node_t node);
void runner_trace_node_end(runner_run_t *run, runner_node_t node,
                           json_object *messages);

/* The model is asked, says a piece (whose reference is taken), and has made
 * a message. */
void runner_trace_model_start(runner_run_t *run);
void runner_trace_model_chunk(runner_run_t *run, json_object *chunk);
void runner_trace_model_end(runner_run_t *run, json_object *message);

/* A tool is called; it has answered when job->is_done. */
void runner_trace_tool(runner_run_t *run, const runner_job_t *job);

#endif

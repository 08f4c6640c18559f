/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream mode `events`: begin, chunks and end of the graph, its nodes, model
 * calls and tool calls, in the format of LangChain's event stream, version 2.
 * A subject that fails or is cancelled has no end event; a failed run has
 * `error`.
 */
#ifndef AGENT_RUNNER_TRACE_H
#define AGENT_RUNNER_TRACE_H

#include "state.h"

/* The graph begins with the input of `start`; it has ended. */
void runner_trace_run_start(runner_run_t *run);
void runner_trace_run_end(runner_run_t *run);

/* A node begins with the state; it has produced messages. */
void runner_trace_node_start(runner_run_t *run, runner_node_t node);
void runner_trace_node_end(runner_run_t *run, runner_node_t node,
                           json_object *messages);

/* The model is called; it produced a chunk, whose reference is taken; it has
 * produced a message. */
void runner_trace_model_start(runner_run_t *run);
void runner_trace_model_chunk(runner_run_t *run, json_object *chunk);
void runner_trace_model_end(runner_run_t *run, json_object *message);

/* A tool is called, or has answered (job->is_done). */
void runner_trace_tool(runner_run_t *run, const runner_job_t *job);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream mode `events`: start, chunks and end of the graph, its nodes, model
 * calls and tool calls, in the format of LangChain's event stream, version 2.
 * When one of them fails or is cancelled there is no end event for it; a run
 * that fails sends `error`.
 */
#ifndef AGENT_RUNNER_TRACE_H
#define AGENT_RUNNER_TRACE_H

#include "state.h"

/* on_chain_start of the graph, with the input of `start`. */
void runner_trace_run_start(runner_run_t *run);
/* on_chain_end of the graph, with the state. */
void runner_trace_run_end(runner_run_t *run);

/* on_chain_start of a node, with the state. */
void runner_trace_node_start(runner_run_t *run, runner_node_t node);
/* on_chain_stream and on_chain_end of a node; messages are its update. */
void runner_trace_node_end(runner_run_t *run, runner_node_t node,
                           json_object *messages);

/* on_chat_model_start, with the conversation; run->call is set. */
void runner_trace_model_start(runner_run_t *run);
/* on_chat_model_stream; takes the reference of chunk. */
void runner_trace_model_chunk(runner_run_t *run, json_object *chunk);
/* The last chunk of the message, and on_chat_model_end. */
void runner_trace_model_end(runner_run_t *run, json_object *message);

/* on_tool_start, or on_tool_end when job->is_done. */
void runner_trace_tool(runner_run_t *run, const runner_job_t *job);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of a run: the events of the stream modes that `start` requested
 * (others are not built), and the line `end`.
 */
#ifndef AGENT_RUNNER_STREAM_H
#define AGENT_RUNNER_STREAM_H

#include "state.h"

/* The run begins; its graph is known. */
void runner_stream_begin(runner_run_t *run);

/* The run continues from its last checkpoint: sends mode values. */
void runner_stream_values(runner_run_t *run);

/* A node begins: sets the run's task_id and the metadata of its messages. */
void runner_stream_task(runner_run_t *run, runner_node_t node);

/* A node is done: messages, an array, is its update; NULL when the node failed
 * with error. */
void runner_stream_task_result(runner_run_t *run, runner_node_t node,
                               json_object *messages, const char *error);

/* The model is called: run->call is set. */
void runner_stream_call(runner_run_t *run);

/* The model produced a piece of its answer. */
void runner_stream_delta(runner_run_t *run, const runner_delta_t *delta);

/* A tool is called, or is done (job->is_done). */
void runner_stream_job(runner_run_t *run, const runner_job_t *job);

/* A tool reports progress: also an event of mode custom. data is borrowed. */
void runner_stream_progress(runner_run_t *run, const runner_job_t *job,
                            json_object *data);

/* An event of mode custom; data is borrowed. */
void runner_stream_custom(runner_run_t *run, json_object *data);

/* The run stops at a breakpoint. */
void runner_stream_interrupt(runner_run_t *run);

/* The run is over: sends `end`, preceded by an error event if problem is not
 * NULL. */
void runner_stream_end(runner_run_t *run, const char *status,
                       const runner_problem_t *problem);

#endif

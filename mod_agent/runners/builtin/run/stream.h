/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run tells the supervisor: checkpoints, its end, and the events of the
 * stream modes that were asked for (others are not made at all).
 */
#ifndef AGENT_RUNNER_STREAM_H
#define AGENT_RUNNER_STREAM_H

#include "run.h"

/* The state of a thread as JSON text: a next run's `start` brings it back in
 * one line, together with the input of that run. */
#define RUNNER_STATE_MAX (RUNNER_LINE_MAX - (size_t)1024 * 1024)
/* Its tree in memory (core/scan.h). 7 MiB of messages of one letter each weigh
 * 200 MB, of {} 1.9 GB. */
#define RUNNER_STATE_WEIGHT_MAX ((size_t)256 * 1024 * 1024)

/*
 * Takes the state as the next checkpoint (a new id, the next step) and sends it
 * with the events that follow from it. source is "input" or "loop"; writes'
 * reference is taken, NULL is null.
 */
void runner_stream_checkpoint(runner_run_t *run, const char *source,
                              json_object *writes);

/* The state of the last checkpoint, for a run that continues from it. */
void runner_stream_values(runner_run_t *run);

/* The run begins; its graph is known. */
void runner_stream_begin(runner_run_t *run);

/* A node begins: sets the run's task_id and the metadata of its messages. */
void runner_stream_task(runner_run_t *run, runner_node_t node);

/* The node is done: its messages are complete, its writes become an update.
 * messages is an array, NULL when the node failed with error. */
void runner_stream_task_result(runner_run_t *run, runner_node_t node,
                               json_object *messages, const char *error);

/* The model is about to be asked: run->call is set. */
void runner_stream_call(runner_run_t *run);

/* A tool is called, or (job->is_done) has answered. */
void runner_stream_job(runner_run_t *run, const runner_job_t *job);

/* The graph has something of its own to say; data is borrowed. */
void runner_stream_custom(runner_run_t *run, json_object *data);

/* The model has said something. */
void runner_stream_delta(runner_run_t *run, const runner_delta_t *delta);

/* The run stops at a breakpoint. */
void runner_stream_interrupt(runner_run_t *run);

/* The last message of a run; an error event goes before it when there is a
 * problem. */
void runner_stream_end(runner_run_t *run, const char *status,
                       const runner_problem_t *problem);

#endif

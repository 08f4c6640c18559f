/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: the state of a run after a step, sent to the supervisor. */
#ifndef AGENT_RUNNER_CHECKPOINT_H
#define AGENT_RUNNER_CHECKPOINT_H

#include "state.h"

/* The longest state as JSON text. No line contains it, but every reader of a
 * state in the server holds it as a whole. */
#define RUNNER_STATE_MAX ((size_t)32 * 1024 * 1024)

/*
 * Sends the state as the next checkpoint (a new id, the next step), and the
 * events of the stream modes values, checkpoints and debug. source is "input"
 * or "loop"; takes the reference of writes, NULL is null. A state that is too
 * large is not sent, and sets run->is_too_large.
 */
void runner_checkpoint_save(runner_run_t *run, const char *source,
                            json_object *writes);

/* Reports what became of the task of the last checkpoint, that of the node:
 * error is NULL if it succeeded. */
void runner_checkpoint_report_task(runner_run_t *run, runner_node_t node,
                                   const char *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines about a run, as they are put on the wire. */
#ifndef AGENT_RUNNER_EMIT_H
#define AGENT_RUNNER_EMIT_H

#include "run.h"

/* A line `event` up to its data, which the caller adds before the end. */
void runner_emit_begin_event(runner_run_t *run, const char *name);

/* Ends a line; one that is too long is dropped and marks the run. */
void runner_emit_end(runner_run_t *run);

/* A whole event; data's reference is taken. */
void runner_emit_event(runner_run_t *run, const char *name, json_object *data);

/* Adds the state to the line that has begun and weighs it; returns the bytes
 * that it took. */
size_t runner_emit_state(runner_run_t *run);

/* All lines of one occasion are written: what they were made of may go. */
void runner_emit_finish(runner_run_t *run);

#endif

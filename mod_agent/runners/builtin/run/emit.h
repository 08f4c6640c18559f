/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the lines of a run: events, and the state inside a line. */
#ifndef AGENT_RUNNER_EMIT_H
#define AGENT_RUNNER_EMIT_H

#include "state.h"

/* Begins a line `event`; the caller adds the data and calls runner_emit_end().
 */
void runner_emit_begin_event(runner_run_t *run, const char *name);

/* Ends a line that is sent even when the run is cancelled. A line that is too
 * long is dropped, and sets run->is_too_large. */
void runner_emit_end(runner_run_t *run);

/* Writes an event; takes the reference of data. */
void runner_emit_event(runner_run_t *run, const char *name, json_object *data);

/*
 * For an event that contains the state: the value to put in its place in data,
 * NULL if the state is that of the last checkpoint, which the line then names;
 * one reference otherwise.
 */
json_object *runner_emit_state(runner_run_t *run);
/* Writes such an event; takes the reference of data. path: a JSON array of the
 * names that lead to that place. */
void runner_emit_event_with_state(runner_run_t *run, const char *name,
                                  json_object *data, const char *path);

/* Writes the event error, even when the run is cancelled; takes the reference.
 */
void runner_emit_error(runner_run_t *run, json_object *error);

/* Writes an event of stream mode debug; takes the reference of payload. path:
 * where data has the state; NULL for none. */
void runner_emit_debug(runner_run_t *run, const char *type,
                       json_object *payload, const char *path);

/* Writes the event of stream mode values, which names the last checkpoint. */
void runner_emit_values(runner_run_t *run);

/* Frees the objects of the lines written since the last call. */
void runner_emit_clear(runner_run_t *run);

#endif

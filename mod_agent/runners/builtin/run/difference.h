/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a run by difference to its last checkpoint: what did not change
 * is found by the identity of the messages, so that a step costs what it
 * changes, whatever the length of the thread. Only `messages` changes in a
 * built-in graph. runners/PROTOCOL.md has the notation.
 */
#ifndef AGENT_RUNNER_DIFFERENCE_H
#define AGENT_RUNNER_DIFFERENCE_H

#include "state.h"

/* The state is that of the checkpoint from which the run starts. */
void runner_difference_begin(runner_run_t *run);

/* Replaces the messages of the state; takes the reference of messages, which
 * may be the same array with more elements. */
void runner_difference_replace(runner_run_t *run, json_object *messages);

/* Removes the last message. */
void runner_difference_remove_last(runner_run_t *run);

/*
 * Adds the state to the unfinished line; has_parent: the line names the last
 * checkpoint as its parent. Sets the sizes and weights of the run. The next
 * difference is to this state.
 */
void runner_difference_add(runner_run_t *run, bool has_parent);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run has to say and may not say yet. From its first long line on a run
 * keeps its lines, asks the supervisor (`want`) and stands still until it is
 * told to go on (`go`); others speak in between. runners/PROTOCOL.md has it.
 */
#ifndef AGENT_RUNNER_HELD_H
#define AGENT_RUNNER_HELD_H

#include "run.h"

/* The line that was just ended on the wire is kept, when it is long or follows
 * one that is. */
void runner_held_keep(runner_run_t *run);

/* Whether the run keeps lines: it must not go on. */
bool runner_held_is_waiting(const runner_run_t *run);

/* Asks for the first of them, unless it was asked for. */
void runner_held_ask(runner_run_t *run);

/* The supervisor said `go`: what was asked for is put on the wire. */
void runner_held_go(runner_run_t *run);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a run that must wait for the supervisor. From its first long line
 * on, or when it has said RUNNER_SAID_MAX bytes, a run keeps its lines, asks
 * (`want`) and does nothing until it is answered (`go`); other runs go on.
 * runners/PROTOCOL.md describes both.
 */
#ifndef AGENT_RUNNER_HELD_H
#define AGENT_RUNNER_HELD_H

#include "run.h"

/* Keeps the line that was just ended on the wire, if it has to wait. */
void runner_held_keep(runner_run_t *run);

/* Whether the run keeps lines: it must not go on. */
bool runner_held_is_waiting(const runner_run_t *run);

/* Asks for the first of them, unless it was asked for. */
void runner_held_ask(runner_run_t *run);

/* The supervisor said `go`: what was asked for is put on the wire. */
void runner_held_go(runner_run_t *run);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a run that are held back until it has credit. A run with a
 * long line, or with RUNNER_SAID_MAX bytes since the last credit, holds its
 * lines back, asks (`want`) and pauses until the answer (`go`); other runs go
 * on. runners/PROTOCOL.md describes both messages.
 */
#ifndef AGENT_RUNNER_OUTPUT_H
#define AGENT_RUNNER_OUTPUT_H

#include "run.h"

/* Holds back the line that was just ended on the wire, if it needs credit or
 * lines before it are held back. */
void runner_output_keep(runner_run_t *run);

/* Whether lines are held back. */
bool runner_output_is_waiting(const runner_run_t *run);

/* Whether the run must not go on: its lines are held back; or those of all runs
 * together are RUNNER_HELD_MAX, and it is not a small one. */
bool runner_output_is_full(const runner_run_t *run);

/* Asks for credit for the first of them, if there are any and no answer is due.
 */
void runner_output_ask(runner_run_t *run);

/* `go` came: puts the lines that were asked for on the wire, and the short ones
 * after them that need not ask. An answer must be due (run->asked > 0). */
void runner_output_go(runner_run_t *run);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a start line before its runner gets it. */
#ifndef AGENT_SUPERVISOR_START_CHECK_H
#define AGENT_SUPERVISOR_START_CHECK_H

#include "../runner/run/runs.h"

/*
 * Whether a runner can be given a line of `length` bytes; false: its run ends
 * in error. A line that breaks the protocol or exhausts the runner's memory
 * would end the runner, and all its runs with it. Requests are checked when
 * they arrive, but a row may be older than these checks, or written by hand.
 */
bool agent_start_check_line(agent_runs_t *runs, agent_lease_t *lease,
                            const char *start, apr_size_t length);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The pipes of runners: non-blocking, and read only while there is room for
 * their output. */
#ifndef AGENT_SUPERVISOR_RUNNER_IO_H
#define AGENT_SUPERVISOR_RUNNER_IO_H

#include "../pool/runner.h"

/* Reads lines of runners, and hands them to the tables of their runs. */
typedef struct agent_runner_io_t {
    agent_context_t *context;
    agent_runner_table_t *runners;
    agent_runs_t *runs;
} agent_runner_io_t;

/* Writes the input of runners, and waits for their output, as long as there is
 * room for it, and for room for the rest of their input. Looks at pending
 * runners only. Returns whether anything was written: statements may be due
 * that wait for a runner to read its input. */
bool agent_runner_io_poll(agent_runner_io_t *io);

/* Handles the lines of held runners for which there is room now. */
void agent_runner_io_resume(agent_runner_io_t *io);

/* Reads the rest of a runner's output and log when it has ended. */
void agent_runner_io_read_rest(agent_runner_io_t *io, agent_runner_t *runner);

#endif

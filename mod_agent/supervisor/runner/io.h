/* SPDX-License-Identifier: Apache-2.0 */
/* The pipes of runners: never blocking, and read only while there is room. */
#ifndef AGENT_SUPERVISOR_RUNNER_IO_H
#define AGENT_SUPERVISOR_RUNNER_IO_H

#include "runner.h"

/* Adds the pipes of all runners to the poll set. */
void agent_runner_poll(agent_supervisor_t *sv);

/* Takes the lines of held runners for which there is room now. */
void agent_runner_resume(agent_supervisor_t *sv);

/* Reads the rest of the pipes of a runner that ends. */
void agent_runner_read_rest(agent_supervisor_t *sv, agent_runner_t *runner);

#endif

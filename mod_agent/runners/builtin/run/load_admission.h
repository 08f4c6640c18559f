/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which runs may begin to read their states. The memory of a state is known
 * when it has been read; before that it is estimated (weight.h). Of the runs
 * whose state may be large one reads at a time, so that at most one state is
 * larger than was expected.
 */
#ifndef AGENT_RUNNER_LOAD_ADMISSION_H
#define AGENT_RUNNER_LOAD_ADMISSION_H

#include "runs.h"

/* Sends the first requests of the runs that wait, as far as memory allows;
 * memory_max: as in queue.h. */
void runner_load_admission_send(runner_run_ring_t *runs, size_t memory_max);

#endif

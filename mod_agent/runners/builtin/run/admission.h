/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a run may continue: its output has credit, and its next node memory.
 */
#ifndef AGENT_RUNNER_ADMISSION_H
#define AGENT_RUNNER_ADMISSION_H

#include "state.h"

/* Whether the run must wait for credit, for the backlogs of other runs, or for
 * memory. */
bool runner_admission_is_blocked(const runner_run_t *run);

/* To be called before runner_run_advance(), which it permits. False: the run is
 * blocked. */
bool runner_admission_begin(runner_run_t *run);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the state from which a run starts: it is warm (warm.h), or requested
 * from the supervisor part by part (`request`, runners/PROTOCOL.md).
 */
#ifndef AGENT_RUNNER_LOAD_H
#define AGENT_RUNNER_LOAD_H

#include "core/raw.h"
#include "state.h"
#include "warm.h"
#include "weight.h"

/* Takes the warm state, or an empty one for a thread without a checkpoint, and
 * returns true. False: the run must wait in RUNNER_PHASE_LOAD. */
bool runner_load_begin(runner_run_t *run);

/* Requests the next part of the state; load_admission.h decides when a run may
 * send its first request. */
void runner_load_request(runner_run_t *run);

/*
 * Takes a reply that part.h has read; weight: that of its line. Either
 * requests the next part, or the run is due: the state is complete, or
 * run->load_problem is set. Returns NULL, or how the reply breaks the protocol.
 */
const char *runner_load_take(runner_run_t *run, json_object *reply,
                             runner_weight_t weight);

#endif

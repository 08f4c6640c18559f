/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a run may continue, or waits for others. */
#include "admission.h"

#include "core/clock.h"
#include "weight.h"

/* A node adds to the state. A run with a small state never waits. */
static bool needs_memory(const runner_run_t *run)
{
    return run->phase == RUNNER_PHASE_NEXT && run->next != RUNNER_NODE_NONE
        && !run->is_stopping && run->weight > RUNNER_WEIGHT_SMALL;
}

static bool waits_for_output(const runner_run_t *run)
{
    return runner_output_is_blocked(&run->output,
                                    run->text_size + run->pending_size);
}

bool runner_admission_is_blocked(const runner_run_t *run)
{
    return waits_for_output(run)
        || (needs_memory(run)
            && !runner_pending_may_step(run->pending, &run->pending_size,
                                        agent_clock_now()));
}

bool runner_admission_begin(runner_run_t *run)
{
    return !waits_for_output(run)
        && (!needs_memory(run)
            || runner_pending_begin_step(run->pending, &run->pending_size,
                                         agent_clock_now()));
}

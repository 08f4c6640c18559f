/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs may begin to read their states. */
#include "load_admission.h"

#include "load.h"
#include "weight.h"

static bool may_be_large(const runner_run_t *run)
{
    return run->expected_weight > RUNNER_WEIGHT_SMALL;
}

/* The runs that read their states, and the others. */
typedef struct loads_t {
    /* A state that may be large is being read. */
    bool is_reading;
    /* A run is past reading its state: it will end. */
    bool is_executing;
} loads_t;

static loads_t count_loads(const runner_run_ring_t *runs)
{
    loads_t loads = {false, false};
    const runner_run_t *run;

    APR_RING_FOREACH(run, runs, runner_run_t, link)
    {
        bool is_load = run->phase == RUNNER_PHASE_LOAD;

        loads.is_reading |= is_load && run->request_id > 0 && may_be_large(run);
        loads.is_executing |= !is_load;
    }
    return loads;
}

void runner_load_admission_send(runner_run_ring_t *runs, size_t memory_max)
{
    loads_t loads = count_loads(runs);
    runner_run_t *run;

    APR_RING_FOREACH(run, runs, runner_run_t, link)
    {
        if (run->phase != RUNNER_PHASE_LOAD || run->request_id > 0) {
            continue;
        }
        if (!may_be_large(run)) {
            runner_load_request(run);
        }
        else if (!loads.is_reading
                 && (!loads.is_executing
                     || runner_runs_weigh_all(runs) <= memory_max)) {
            loads.is_reading = true;
            runner_load_request(run);
        }
    }
}

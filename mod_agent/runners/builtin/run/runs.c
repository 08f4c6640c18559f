/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and measuring runs; turns of heavy ones. */
#include "runs.h"

#include <string.h>

#include "admission.h"
#include "weight.h"

runner_run_t *runner_runs_find(const runner_run_ring_t *runs,
                               const char *run_id)
{
    runner_run_t *run = APR_RING_FIRST(runs);

    while (run != APR_RING_SENTINEL(runs, runner_run_t, link)) {
        if (strcmp(run->run_id, run_id) == 0) {
            return run;
        }
        run = APR_RING_NEXT(run, link);
    }
    return NULL;
}

size_t runner_runs_weigh(const runner_run_t *run)
{
    return (run->weight > run->start_weight ? run->weight : run->start_weight)
        + run->pending_size;
}

size_t runner_runs_weigh_all(const runner_run_ring_t *runs)
{
    runner_run_t *run;
    size_t bytes = 0;

    APR_RING_FOREACH(run, runs, runner_run_t, link)
    {
        bytes += runner_runs_weigh(run)
            + agent_buffer_length(&run->output.backlog);
    }
    return bytes;
}

bool runner_runs_is_heavy(const runner_run_t *run, apr_time_t now)
{
    return runner_runs_weigh(run) > RUNNER_WEIGHT_SMALL && run->wake_at <= now
        && !runner_admission_is_blocked(run);
}

void runner_runs_move_back(runner_run_ring_t *runs, runner_run_t *run)
{
    APR_RING_REMOVE(run, link);
    APR_RING_INSERT_TAIL(runs, run, runner_run_t, link);
}

runner_run_t *runner_runs_choose_heavy(runner_run_ring_t *runs, apr_time_t now)
{
    runner_run_t *run;

    APR_RING_FOREACH(run, runs, runner_run_t, link)
    {
        if (runner_runs_is_heavy(run, now)) {
            runner_runs_move_back(runs, run);
            return run;
        }
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Time limits of runs; see deadline.h. */
#include "deadline.h"

#include "drain.h"
#include "run/run_end.h"
#include "run/runs.h"

/* grace_at has passed: ends the run without its runner, which is replaced. */
static void give_up_waiting(agent_runs_t *runs, agent_lease_t *lease)
{
    agent_runner_t *runner = lease->group->runner;

    lease->grace_at = AGENT_CLOCK_NEVER;
    agent_report_write(runs->context, AGENT_LOG_WARNING, "AGT0342", 0,
                       "runner %d did not end run %.36s when asked to; the "
                       "runner will be replaced",
                       (int)runner->pid, lease->key.run_id);
    if (lease->state == AGENT_LEASE_HELD) {
        if (lease->cause == AGENT_CAUSE_DEADLINE) {
            agent_run_end_time_out(runs, lease);
        }
        else {
            agent_run_end_release(runs, lease,
                                  lease->cause != AGENT_CAUSE_DRAIN,
                                  "the runner did not stop when asked to");
        }
    }
    agent_runner_drain_unresponsive(runs, runner);
}

static void check_lease(const agent_runner_table_t *table, agent_runs_t *runs,
                        agent_lease_t *lease)
{
    apr_time_t now = runs->context->now;

    if (lease->grace_at != AGENT_CLOCK_NEVER
        && ((lease->credit.wanted > 0
             && lease->credit.requests <= AGENT_CREDIT_LAST_REQUESTS)
            || !agent_runner_may_answer(table, lease->group->runner))) {
        lease->grace_at = now + runs->context->timing.cancel_grace;
    }
    else if (lease->grace_at <= now) {
        give_up_waiting(runs, lease);
    }
    else if (lease->deadline <= now && lease->cause == AGENT_CAUSE_NONE) {
        agent_run_end_cancel(runs, lease, AGENT_CAUSE_DEADLINE);
    }
}

void agent_runner_deadline_tick(const agent_runner_table_t *table,
                                agent_runs_t *runs)
{
    agent_runner_t *runner;
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH(runner, &table->all, agent_runner_t, link)
    {
        AGENT_RING_EACH_SAFE(lease, next, &runner->group.leases, agent_lease_t,
                             link)
        {
            check_lease(table, runs, lease);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The end of quarantine; see quarantine.h. */
#include "quarantine.h"

#include "drain.h"
#include "pool/slots.h"
#include "run/run_end.h"
#include "run/runs.h"

/* One of this many quarantine runners of a pool may be drained. */
#define SHARE_DRAINING 4

static bool is_executing(const agent_lease_t *lease)
{
    return lease->state == AGENT_LEASE_HELD && lease->is_started;
}

/* When all runs of a runner have passed; AGENT_CLOCK_NEVER if it executes
 * none. */
static apr_time_t quarantine_end(const agent_runner_t *runner)
{
    apr_time_t last = 0;
    const agent_lease_t *lease;

    AGENT_RING_EACH(lease, &runner->group.leases, agent_lease_t, link)
    {
        if (is_executing(lease) && lease->quarantine_end > last) {
            last = lease->quarantine_end;
        }
    }
    return last > 0 ? last : AGENT_CLOCK_NEVER;
}

/* The pool's runner whose runs passed first; NULL: those of none have. */
static agent_runner_t *find_passed(const agent_runner_table_t *table,
                                   const agent_runner_pool_t *pool)
{
    agent_runner_t *best = NULL;
    agent_runner_t *runner;
    apr_time_t first = table->context->now;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->max_shared > 0 && runner->state == AGENT_RUNNER_READY
            && quarantine_end(runner) <= first) {
            best = runner;
            first = quarantine_end(runner);
        }
    }
    return best;
}

static void end_quarantine(agent_runs_t *runs, agent_runner_t *runner)
{
    agent_lease_t *lease;

    agent_runner_drain(runs, runner);
    agent_report_write(
        runs->context, AGENT_LOG_NOTICE, "AGT0388", 0,
        "runner %d has executed %d quarantined runs long enough: they "
        "continue beside others, its slot is for quarantined runs "
        "that wait",
        (int)runner->pid, runner->group.active);
    AGENT_RING_EACH(lease, &runner->group.leases, agent_lease_t, link)
    {
        if (is_executing(lease) && lease->cause == AGENT_CAUSE_NONE) {
            lease->next_max_shared = AGENT_SHARED_BY_ANY;
            agent_run_end_cancel(runs, lease, AGENT_CAUSE_DRAIN);
        }
    }
}

static void tick_pool(const agent_runner_table_t *table, agent_runs_t *runs,
                      const agent_runner_pool_t *pool)
{
    int share = agent_slots_quarantine_share(table);
    int most_draining = (share + SHARE_DRAINING - 1) / SHARE_DRAINING;
    agent_runner_t *runner;
    int taken = 0;
    int draining = 0;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->max_shared > 0 && runner->state < AGENT_RUNNER_DEAD) {
            taken++;
            draining += runner->state > AGENT_RUNNER_READY;
        }
    }
    while (taken >= share && draining++ < most_draining
           && (runner = find_passed(table, pool)) != NULL) {
        end_quarantine(runs, runner);
    }
}

void agent_runner_quarantine_tick(const agent_runner_table_t *table,
                                  agent_runs_t *runs)
{
    for (int i = 0;
         i < table->pool_count && table->context->mode == AGENT_MODE_RUNNING;
         i++) {
        tick_pool(table, runs, &table->pools[i]);
    }
}

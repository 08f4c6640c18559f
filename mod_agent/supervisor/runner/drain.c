/* SPDX-License-Identifier: Apache-2.0 */
/* Drains runners; see drain.h. */
#include "drain.h"

#include "protocol/protocol.h"
#include "run/run_end.h"
#include "run/runs.h"

static void begin_drain(agent_runs_t *runs, agent_runner_t *runner,
                        apr_time_t limit_at)
{
    runner->state = AGENT_RUNNER_DRAINING;
    agent_pool_miss_runner(runner->runner_pool);
    runner->limit_at = limit_at;
    agent_protocol_drain(agent_runner_input(runner));
    agent_run_end_withdraw(runs, &runner->group);
}

void agent_runner_drain(agent_runs_t *runs, agent_runner_t *runner)
{
    if (runner->state <= AGENT_RUNNER_READY) {
        begin_drain(runs, runner,
                    runs->context->now + runs->context->timing.drain_grace);
    }
}

void agent_runner_drain_replaced(agent_runs_t *runs, agent_runner_t *runner)
{
    agent_runner_drain(runs, runner);
    runner->drains_without_limit = true;
}

void agent_runner_drain_unresponsive(agent_runs_t *runs, agent_runner_t *runner)
{
    if (runner->state <= AGENT_RUNNER_READY) {
        agent_report_write(runs->context, AGENT_LOG_NOTICE, "AGT0338", 0,
                           "runner %d gets no more runs and is replaced",
                           (int)runner->pid);
        agent_runner_drain(runs, runner);
    }
    else if (runner->drains_without_limit) {
        runner->drains_without_limit = false;
        runner->limit_at = runs->context->now
            + runs->context->timing.drain_grace;
    }
}

void agent_runner_drain_all(agent_runner_table_t *table, agent_runs_t *runs)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &table->all, agent_runner_t, link)
    {
        if (runner->state <= AGENT_RUNNER_READY) {
            begin_drain(runs, runner, AGENT_CLOCK_NEVER);
        }
    }
}

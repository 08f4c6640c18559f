/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of runners; see watch.h. */
#include "watch.h"

#include <signal.h>

#include "../../core/sanitizer.h"
#include "../process/process.h"
#include "exit.h"
#include "io/log.h"
#include "protocol/protocol.h"

/* A build with a sanitizer may use this many times as much memory. */
#define SANITIZER_FACTOR 4

static int count_held(const agent_runner_t *runner)
{
    agent_lease_t *lease;
    int count = 0;

    AGENT_RING_EACH(lease, &runner->group.leases, agent_lease_t, link)
    {
        count += lease->state == AGENT_LEASE_HELD;
    }
    return count;
}

/* limit_at has passed. */
static void exceed_limit(agent_runner_table_t *table, agent_runs_t *runs,
                         agent_runner_t *runner)
{
    switch (runner->state) {
    case AGENT_RUNNER_STARTING:
        agent_report_write(table->context, AGENT_LOG_ERR, "AGT0333", 0,
                           "runner %d did not become ready in time",
                           (int)runner->pid);
        agent_runner_kill(table, runner, AGENT_LOSS_COUNTED,
                          "the runner did not become ready");
        break;
    case AGENT_RUNNER_DRAINING:
        agent_runner_kill(table, runner, AGENT_LOSS_UNCOUNTED,
                          "the runner was replaced");
        break;
    default:
        /* It was killed, but its exit was not reported: it may hang in a system
         * call. */
        agent_runner_exit_release_runs(runs, runner);
        agent_spawner_kill(&table->spawner, runner->id, SIGKILL);
        runner->limit_at = table->context->now + AGENT_RUNNER_KILL_TIMEOUT;
    }
}

static void check_ping(agent_runner_table_t *table, agent_runner_t *runner)
{
    if (runner->pong_by <= table->context->now) {
        agent_report_write(table->context, AGENT_LOG_ERR, "AGT0335", 0,
                           "runner %d does not answer: it is killed, its %d "
                           "runs are released",
                           (int)runner->pid, runner->group.active);
        agent_runner_kill(table, runner, AGENT_LOSS_COUNTED,
                          "the runner did not answer");
    }
    else if (runner->ping_at <= table->context->now) {
        agent_protocol_ping(agent_runner_input(runner), ++runner->ping_id);
        runner->ping_at = AGENT_CLOCK_NEVER;
        runner->pong_by = table->context->now
            + table->context->timing.ping_timeout;
    }
}

/*
 * The spawner sets RLIMIT_DATA, which stops ordinary allocations at the limit
 * but does not count shared memory and mapped files. Resident memory includes
 * those. It is checked once a second, so the host must be able to bear what a
 * runner maps within a second.
 */
bool agent_runner_watch_exceeds(const agent_runner_t *runner, apr_int64_t bytes)
{
    apr_int64_t limit = bytes * (AGENT_IS_SANITIZED ? SANITIZER_FACTOR : 1);

    return limit > 0 && runner->pid > 0
        && agent_process_resident(runner->pid) > limit;
}

/* A runner that was replaced in time may complete its runs. */
static void keep_patient(const agent_runner_table_t *table,
                         agent_runner_t *runner)
{
    if (runner->state == AGENT_RUNNER_DRAINING && runner->drains_without_limit
        && runner->limit_at != AGENT_CLOCK_NEVER) {
        runner->limit_at = table->context->now
            + table->context->timing.drain_grace;
    }
}

static void check_runner(agent_runner_table_t *table, agent_runs_t *runs,
                         agent_runner_t *runner)
{
    if (!agent_runner_may_answer(table, runner)
        && runner->pong_by != AGENT_CLOCK_NEVER) {
        runner->pong_by = table->context->now
            + table->context->timing.ping_timeout;
    }
    keep_patient(table, runner);
    if (runner->state == AGENT_RUNNER_DRAINING
        && runner->limit_at != AGENT_CLOCK_NEVER && count_held(runner) == 0) {
        agent_runner_kill(table, runner, AGENT_LOSS_UNCOUNTED,
                          "the runner was replaced");
    }
    else if (runner->limit_at <= table->context->now) {
        exceed_limit(table, runs, runner);
    }
    else if (runner->state <= AGENT_RUNNER_DRAINING
             && agent_runner_watch_exceeds(
                 runner, runner->runner_pool->config->memory)) {
        agent_report_write(table->context, AGENT_LOG_ERR, "AGT0386", 0,
                           "runner %d takes more memory than the %d MB of "
                           "AgentRunnerMemory: it is killed, its %d runs are "
                           "released",
                           (int)runner->pid,
                           (int)(runner->runner_pool->config->memory >> 20),
                           runner->group.active);
        agent_runner_kill(table, runner, AGENT_LOSS_COUNTED,
                          "the runner took more memory than it may");
    }
    else if (runner->max_shared > 0 && runner->state == AGENT_RUNNER_READY
             && runner->group.active == 0) {
        agent_runner_kill(table, runner, AGENT_LOSS_UNCOUNTED,
                          "the runner is no longer needed");
    }
    else if (runner->state <= AGENT_RUNNER_DRAINING) {
        check_ping(table, runner);
    }
}

void agent_runner_watch_tick(agent_runner_table_t *table, agent_runs_t *runs)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &table->all, agent_runner_t, link)
    {
        if (runner->state != AGENT_RUNNER_DEAD) {
            check_runner(table, runs, runner);
            agent_runner_log_tick(table->context, runner);
        }
    }
}

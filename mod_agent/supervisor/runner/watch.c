/* SPDX-License-Identifier: Apache-2.0 */
/* Watching runners while they live: readiness, pings, replacement. */
#include "watch.h"
#include "io.h"

#include <signal.h>

#include "../instance.h"

/* What a sanitizer's build may take more. */
#define SANITIZER_FACTOR 4

void agent_runner_leave(agent_supervisor_t *sv, agent_runner_t *runner)
{
    if (runner->state > AGENT_RUNNER_READY) {
        return;
    }
    runner->state = AGENT_RUNNER_LEAVING;
    runner->limit_at = sv->now + sv->timing.recycle_grace;
    agent_protocol_drain(&runner->input);
    agent_start_withdraw(sv, runner);
}

void agent_runner_recycle(agent_supervisor_t *sv, agent_runner_t *runner)
{
    if (runner->state <= AGENT_RUNNER_READY) {
        agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0338", 0,
                           "runner %d gets no more runs and is replaced",
                           (int)runner->pid);
        agent_runner_leave(sv, runner);
    }
}

void agent_runner_make_room(agent_supervisor_t *sv)
{
    agent_runner_t *first = NULL;
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        if (runner->max_shared > 0) {
            continue;
        }
        if (runner->state == AGENT_RUNNER_KILLED) {
            return;
        }
        if (runner->state == AGENT_RUNNER_LEAVING
            && (first == NULL || runner->limit_at < first->limit_at)) {
            first = runner;
        }
    }
    if (first != NULL) {
        agent_runner_kill(sv, first, AGENT_LOSS_UNCOUNTED,
                          "the runner was replaced");
    }
}

void agent_runner_drain_all(agent_supervisor_t *sv)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        if (runner->state <= AGENT_RUNNER_READY) {
            runner->state = AGENT_RUNNER_LEAVING;
            /* The drain has limits of its own. */
            runner->limit_at = AGENT_NEVER;
            agent_protocol_drain(&runner->input);
            agent_start_withdraw(sv, runner);
        }
    }
}

void agent_runner_signal_all(agent_supervisor_t *sv, int number)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        if (runner->state < AGENT_RUNNER_DEAD) {
            agent_spawner_kill(&sv->spawner, runner->id, number);
        }
        /* It was not asked while it could not answer. */
        if (runner->pong_by != AGENT_NEVER) {
            runner->pong_by = sv->now + sv->timing.ping_timeout;
        }
    }
}

static int count_held(const agent_runner_t *runner)
{
    agent_lease_t *lease;
    int count = 0;

    AGENT_RING_EACH(lease, &runner->leases, agent_lease_t, link)
    {
        count += lease->state == AGENT_LEASE_HELD;
    }
    return count;
}

/* Its time is over. */
static void exceed_limit(agent_supervisor_t *sv, agent_runner_t *runner)
{
    switch (runner->state) {
    case AGENT_RUNNER_STARTING:
        agent_report_write(sv, AGENT_LOG_ERR, "AGT0333", 0,
                           "runner %d did not become ready in time",
                           (int)runner->pid);
        agent_runner_kill(sv, runner, AGENT_LOSS_COUNTED,
                          "the runner did not become ready");
        break;
    case AGENT_RUNNER_LEAVING:
        agent_runner_kill(sv, runner, AGENT_LOSS_UNCOUNTED,
                          "the runner was replaced");
        break;
    default:
        /* Killed, but its end was not reported. It may be held up in the
         * system for as long as it likes, its runs may not: ask again. */
        agent_runner_give_back(sv, runner);
        agent_spawner_kill(&sv->spawner, runner->id, SIGKILL);
        runner->limit_at = sv->now + apr_time_from_sec(5);
    }
}

static void check_ping(agent_supervisor_t *sv, agent_runner_t *runner)
{
    if (runner->pong_by <= sv->now) {
        agent_report_write(sv, AGENT_LOG_ERR, "AGT0335", 0,
                           "runner %d does not answer: it is killed, its %d "
                           "runs are given back",
                           (int)runner->pid, runner->active);
        agent_runner_kill(sv, runner, AGENT_LOSS_COUNTED,
                          "the runner did not answer any more");
    }
    else if (runner->ping_at <= sv->now) {
        agent_protocol_ping(&runner->input, ++runner->ping_id);
        runner->ping_at = AGENT_NEVER;
        runner->pong_by = sv->now + sv->timing.ping_timeout;
    }
}

/*
 * The spawner sets RLIMIT_DATA, which stops ordinary allocations at the limit
 * but does not count shared memory and mapped files. Resident memory includes
 * those. It is checked once a second, so the host must be able to bear what a
 * runner maps within a second.
 */
static bool exceeds_memory(const agent_supervisor_t *sv,
                           const agent_runner_t *runner)
{
    apr_int64_t limit = sv->config->runner_memory
        * (AGENT_PROCESS_IS_SANITIZED ? SANITIZER_FACTOR : 1);

    return limit > 0 && runner->pid > 0
        && agent_process_resident(runner->pid) > limit;
}

static void check_runner(agent_supervisor_t *sv, agent_runner_t *runner)
{
    if (!agent_runner_may_answer(sv, runner)
        && runner->pong_by != AGENT_NEVER) {
        runner->pong_by = sv->now + sv->timing.ping_timeout;
    }
    if (runner->state == AGENT_RUNNER_LEAVING && runner->limit_at != AGENT_NEVER
        && count_held(runner) == 0) {
        agent_runner_kill(sv, runner, AGENT_LOSS_UNCOUNTED,
                          "the runner was replaced");
    }
    else if (runner->limit_at <= sv->now) {
        exceed_limit(sv, runner);
    }
    else if (runner->state <= AGENT_RUNNER_LEAVING
             && exceeds_memory(sv, runner)) {
        agent_report_write(sv, AGENT_LOG_ERR, "AGT0386", 0,
                           "runner %d takes more memory than the %d MB of "
                           "AgentRunnerMemory: it is killed, its %d runs are "
                           "given back",
                           (int)runner->pid,
                           (int)(sv->config->runner_memory >> 20),
                           runner->active);
        agent_runner_kill(sv, runner, AGENT_LOSS_COUNTED,
                          "the runner took more memory than it may");
    }
    else if (runner->max_shared > 0 && runner->state == AGENT_RUNNER_READY
             && runner->active == 0) {
        agent_runner_kill(sv, runner, AGENT_LOSS_UNCOUNTED,
                          "the runner is no longer needed");
    }
    else if (runner->state <= AGENT_RUNNER_LEAVING) {
        check_ping(sv, runner);
    }
}

void agent_runner_tick(agent_supervisor_t *sv)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        if (runner->state != AGENT_RUNNER_DEAD) {
            check_runner(sv, runner);
            agent_runner_tick_log(sv, runner);
        }
    }
    agent_runner_tick_trials(sv);
}

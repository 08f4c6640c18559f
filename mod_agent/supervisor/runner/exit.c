/* SPDX-License-Identifier: Apache-2.0 */
/* The end of runner processes, and of their runs; see exit.h. */
#include "exit.h"

#include <sys/wait.h>

#include <apr_strings.h>

#include "io/io.h"
#include "run/run_end.h"
#include "run/runs.h"

/* A runner that ends sooner has failed to start. */
#define SHORT_LIFE apr_time_from_sec(1)

/* Of a runner that has no more memory (PROTOCOL.md). */
#define STATUS_MEMORY 71

/* Runs that were lost together execute in groups of a quarter, rounded up. */
static int group_size(int started)
{
    return (started + 3) / 4;
}

/* Counts the runs that were started, in any state: each may be the cause. */
static int count_started(const agent_runner_t *runner)
{
    const agent_lease_t *lease;
    int count = 0;

    AGENT_RING_EACH(lease, &runner->group.leases, agent_lease_t, link)
    {
        count += lease->is_started;
    }
    return count;
}

static void release_lost(agent_runs_t *runs, const agent_runner_t *runner,
                         agent_lease_t *lease, int started)
{
    bool may_be_cause = runner->loss == AGENT_LOSS_COUNTED && lease->is_started
        && lease->cause != AGENT_CAUSE_DRAIN;

    if (may_be_cause && started > 1) {
        lease->next_max_shared = group_size(started);
    }
    if (lease->has_crashed) {
        agent_run_end_release(runs, lease, true,
                              "the database crashed at a statement about it");
        return;
    }
    agent_run_end_release(runs, lease, may_be_cause && started == 1,
                          runner->reason);
}

static void end_held(agent_runs_t *runs, const agent_runner_t *runner,
                     agent_lease_t *lease, int started)
{
    if (runner->loss == AGENT_LOSS_FORGET) {
        agent_run_end_set_state(runs, lease, AGENT_LEASE_GONE);
    }
    else if (lease->cause == AGENT_CAUSE_DEADLINE) {
        agent_run_end_time_out(runs, lease);
    }
    else {
        release_lost(runs, runner, lease, started);
    }
}

void agent_runner_exit_release_runs(agent_runs_t *runs, agent_runner_t *runner)
{
    int started = count_started(runner);

    if (runner->loss == AGENT_LOSS_COUNTED && started > 1) {
        agent_report_write(runs->context, AGENT_LOG_NOTICE, "AGT0374", 0,
                           "runner %d ended with %d runs: they are tried "
                           "again, at most %d together",
                           (int)runner->pid, started, group_size(started));
    }
    while (!APR_RING_EMPTY(&runner->group.leases, agent_lease_t, link)) {
        agent_lease_t *lease = APR_RING_FIRST(&runner->group.leases);

        /* The end of a run in another state is in a batch or a release. */
        if (lease->state == AGENT_LEASE_HELD) {
            end_held(runs, runner, lease, started);
        }
        agent_run_end_detach(runs, lease);
    }
}

void agent_runner_exit_kill_all(agent_runner_table_t *table, agent_runs_t *runs,
                                agent_loss_t loss, const char *reason)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &table->all, agent_runner_t, link)
    {
        agent_runner_kill(table, runner, loss, reason);
        runner->loss = loss;
        runner->reason = reason;
        agent_runner_exit_release_runs(runs, runner);
    }
}

static void describe_status(char *text, size_t size, int status)
{
    if (WIFSIGNALED(status)) {
        apr_snprintf(text, size, "signal %d", WTERMSIG(status));
    }
    else {
        apr_snprintf(text, size, "exit status %d", WEXITSTATUS(status));
    }
}

/*
 * Delays the next runner if this one failed to start, and ends the delays if it
 * lived long enough. A quarantine runner is expected to die of its runs; only
 * one that has executed none is a failure: its runs are requeued uncounted, and
 * would be claimed for a new runner without a pause.
 */
static void adjust_pause(agent_context_t *context, const agent_runner_t *runner)
{
    bool is_expected = runner->is_replaced
        || (runner->max_shared > 0 && runner->group.used > 0);

    if (runner->slots > 0 && context->now - runner->started_at >= SHORT_LIFE) {
        agent_pool_count_success(runner->runner_pool, runner->max_shared);
    }
    else if (runner->loss == AGENT_LOSS_COUNTED && !is_expected) {
        agent_pool_count_failure(runner->runner_pool, context,
                                 runner->max_shared);
    }
}

/* The status is its own: a runner that was killed has none. */
static void blame_memory(agent_runner_t *runner, int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_MEMORY) {
        runner->reason = "the runner process ran out of memory";
    }
}

static bool is_any_ready(const agent_runner_pool_t *pool)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->state == AGENT_RUNNER_READY) {
            return true;
        }
    }
    return false;
}

/* It has ended before it was ready and before it imported a graph. */
static void count_failed_start(const agent_context_t *context,
                               const agent_runner_t *runner, const char *how)
{
    if (runner->slots == 0 && runner->importing == NULL
        && runner->loss == AGENT_LOSS_COUNTED
        && context->mode == AGENT_MODE_RUNNING
        && !is_any_ready(runner->runner_pool)) {
        agent_pool_count_failed_start(runner->runner_pool, how);
    }
}

static void end_runner(agent_runner_io_t *io, agent_runner_t *runner,
                       int status)
{
    bool was_asked = runner->is_replaced
        || io->context->mode != AGENT_MODE_RUNNING;
    bool is_expected = runner->loss != AGENT_LOSS_COUNTED
        || runner->max_shared > 0 || (was_asked && runner->group.active == 0);
    bool was_killed;
    char how[64];

    if (runner->state == AGENT_RUNNER_DEAD) {
        return;
    }
    /* It may have sent `end` before it ended. */
    agent_runner_io_read_rest(io, runner);
    describe_status(how, sizeof(how), status);
    agent_report_write(
        io->context, is_expected ? AGENT_LOG_INFO : AGENT_LOG_WARNING,
        "AGT0331", 0, "runner %d ended (%s) with %d runs (pool %s)",
        (int)runner->pid, how, runner->group.active,
        runner->runner_pool->config->name);
    blame_memory(runner, status);
    agent_runner_exit_release_runs(io->runs, runner);
    if (runner->state == AGENT_RUNNER_STARTING && runner->importing != NULL) {
        /* The end of its output was not read first. */
        agent_runner_kill(io->runners, runner, runner->loss, runner->reason);
    }
    was_killed = runner->state == AGENT_RUNNER_KILLED;
    agent_runner_set_dead(io->runners, runner);
    /* The signal would say nothing. */
    count_failed_start(io->context, runner, was_killed ? runner->reason : how);
    adjust_pause(io->context, runner);
}

static void report_unlimited(const agent_context_t *context,
                             const agent_runner_t *runner, int number)
{
    agent_runner_pool_t *pool = runner->runner_pool;

    agent_report_repeat_of(
        context, &pool->report, AGENT_LOG_WARNING, "AGT0357",
        APR_FROM_OS_ERROR(number),
        "runner %d could not be moved into the cgroup of pool %s",
        (int)runner->pid, pool->config->name);
}

static void refuse_runner(agent_runner_io_t *io, agent_runner_t *runner,
                          int number)
{
    agent_runner_pool_t *pool = runner->runner_pool;

    agent_report_repeat_of(io->context, &pool->report, AGENT_LOG_ERR, "AGT0336",
                           APR_FROM_OS_ERROR(number),
                           "the spawner could not start a runner of pool %s",
                           pool->config->name);
    runner->loss = AGENT_LOSS_UNCOUNTED;
    agent_runner_exit_release_runs(io->runs, runner);
    agent_runner_set_dead(io->runners, runner);
    agent_pool_count_failure(pool, io->context, runner->max_shared);
}

bool agent_runner_exit_take_updates(agent_runner_io_t *io)
{
    for (;;) {
        apr_uint32_t id = 0;
        int value = 0;
        agent_spawner_update_t update = agent_spawner_receive(
            &io->runners->spawner, &id, &value);
        agent_runner_t *runner = agent_runner_find(io->runners, id);

        if (update == AGENT_SPAWNER_NOTHING || update == AGENT_SPAWNER_LOST) {
            return update == AGENT_SPAWNER_NOTHING;
        }
        if (runner == NULL) {
            continue;
        }
        if (update == AGENT_SPAWNER_STARTED) {
            runner->pid = (pid_t)value;
        }
        else if (update == AGENT_SPAWNER_UNLIMITED) {
            report_unlimited(io->context, runner, value);
        }
        else if (update == AGENT_SPAWNER_EXITED) {
            end_runner(io, runner, value);
        }
        else if (update == AGENT_SPAWNER_REFUSED) {
            refuse_runner(io, runner, value);
        }
    }
}

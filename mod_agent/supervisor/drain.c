/* SPDX-License-Identifier: Apache-2.0 */
/* The ways out; see drain.h. */
#include "drain.h"

#include "runner/io.h"
#include "instance.h"

/* For the last words to the database after a drain. */
#define LAST_WORDS apr_time_from_sec(5)

void agent_drain_begin(agent_supervisor_t *sv)
{
    if (sv->mode != AGENT_MODE_RUNNING) {
        return;
    }
    agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0350", 0,
                       "draining: no more runs are claimed, %d may finish "
                       "within %d s",
                       sv->leases.held,
                       (int)apr_time_sec(sv->config->drain_timeout));
    sv->mode = AGENT_MODE_DRAINING;
    sv->drain.ask_at = sv->now + sv->config->drain_timeout;
    /* The database learns that we are draining. */
    sv->worker.renew_at = sv->now;
    agent_runner_drain_all(sv);
}

/* Ends that are in the pipes already need not be executed again. */
static void read_last_words(agent_supervisor_t *sv)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        agent_runner_read_rest(sv, runner);
    }
}

void agent_drain_leave(agent_supervisor_t *sv, apr_interval_time_t patience,
                       const char *why)
{
    if (sv->mode >= AGENT_MODE_LEAVING) {
        return;
    }
    read_last_words(sv);
    agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0352", 0,
                       "leaving (%s): %d runs are given back", why,
                       sv->leases.held);
    sv->mode = AGENT_MODE_LEAVING;
    sv->drain.leave_by = sv->now + patience;
    /* What they have said is still saved; then the burial of this worker
     * gives back whatever it holds. */
    agent_runner_kill_all(sv, AGENT_LOSS_FORGET, why);
    agent_release_clear(sv);
    agent_batch_hurry(sv);
    agent_webhook_abort(sv);
}

void agent_drain_spawner_lost(agent_supervisor_t *sv)
{
    if (sv->mode < AGENT_MODE_LEAVING) {
        agent_report_write(sv, AGENT_LOG_ERR, "AGT0305", 0,
                           "the spawner process has ended: this supervisor "
                           "ends too, to be started again");
        sv->exit_code = 1;
    }
    sv->is_spawner_lost = true;
    agent_drain_leave(sv, apr_time_from_sec(1), "the spawner has ended");
}

/* Drain time is over: stop at a checkpoint. */
static void ask_to_stop(agent_supervisor_t *sv)
{
    agent_runner_t *runner;
    agent_lease_t *lease;
    agent_lease_t *next;

    agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0351", 0,
                       "drain time is over: %d runs are asked to stop at a "
                       "checkpoint",
                       sv->leases.held);
    sv->drain.ask_at = AGENT_NEVER;
    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        AGENT_RING_EACH_SAFE(lease, next, &runner->leases, agent_lease_t, link)
        {
            if (lease->state == AGENT_LEASE_HELD
                && lease->cause == AGENT_CAUSE_NONE) {
                agent_lease_cancel(sv, lease, AGENT_CAUSE_DRAIN);
            }
        }
    }
}

static apr_time_t step_draining(agent_supervisor_t *sv)
{
    if (sv->leases.held == 0 && agent_batch_is_empty(sv)
        && agent_release_is_empty(sv) && agent_webhook_is_idle(sv)) {
        agent_drain_leave(sv, LAST_WORDS, "drained");
        return sv->now;
    }
    if (sv->drain.ask_at <= sv->now) {
        ask_to_stop(sv);
    }
    return sv->drain.ask_at;
}

static apr_time_t step_leaving(agent_supervisor_t *sv)
{
    bool is_busy = sv->database.state == AGENT_DATABASE_BUSY
        || sv->bulk.state == AGENT_DATABASE_BUSY;

    if (sv->drain.leave_by <= sv->now) {
        agent_report_write(sv, AGENT_LOG_WARNING, "AGT0353", 0,
                           "the database did not answer in time: the runs "
                           "will be released by the next supervisor");
        sv->mode = AGENT_MODE_DONE;
        return sv->now;
    }
    if (agent_batch_is_empty(sv) && agent_webhook_is_idle(sv) && !is_busy
        && sv->worker.state != AGENT_WORKER_LEAVING
        && sv->worker.state != AGENT_WORKER_LEFT) {
        agent_worker_leave(sv);
    }
    if (sv->worker.state == AGENT_WORKER_LEFT && agent_notify_is_empty(sv)
        && !is_busy) {
        sv->mode = AGENT_MODE_DONE;
        return sv->now;
    }
    return sv->drain.leave_by;
}

apr_time_t agent_drain_step(agent_supervisor_t *sv)
{
    switch (sv->mode) {
    case AGENT_MODE_DRAINING:
        return step_draining(sv);
    case AGENT_MODE_LEAVING:
        return step_leaving(sv);
    default:
        return AGENT_NEVER;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How the supervisor ends; see drain.h. */
#include "drain.h"

#include "instance.h"
#include "run_end.h"
#include "runner/exit.h"
#include "runner/io.h"
#include "runner/leave.h"

/* For the final writes to the database after a drain. */
#define FINAL_WRITES apr_time_from_sec(5)

void agent_drain_begin(agent_supervisor_t *sv)
{
    if (sv->context->mode != AGENT_MODE_RUNNING) {
        return;
    }
    agent_report_write(sv->context, AGENT_LOG_NOTICE, "AGT0350", 0,
                       "draining: no more runs are claimed, %d may finish "
                       "within %d s",
                       sv->leases.held,
                       (int)apr_time_sec(sv->context->config->drain_timeout));
    sv->context->mode = AGENT_MODE_DRAINING;
    sv->drain.ask_at = sv->context->now + sv->context->config->drain_timeout;
    /* The renewal stores that this worker is draining. */
    sv->worker.renew_at = sv->context->now;
    agent_runner_drain_all(sv);
}

/* A run whose end is in a pipe need not be executed again. */
static void read_final_output(agent_supervisor_t *sv)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        agent_runner_read_rest(sv, runner);
    }
}

void agent_drain_leave(agent_supervisor_t *sv, apr_interval_time_t timeout,
                       const char *why)
{
    if (sv->context->mode >= AGENT_MODE_LEAVING) {
        return;
    }
    read_final_output(sv);
    agent_report_write(sv->context, AGENT_LOG_NOTICE, "AGT0352", 0,
                       "leaving (%s): %d runs are given back", why,
                       sv->leases.held);
    sv->context->mode = AGENT_MODE_LEAVING;
    sv->drain.leave_by = sv->context->now + timeout;
    /* Their output is still saved; then this worker is marked dead, which
     * requeues its runs. */
    agent_runner_kill_all(sv, AGENT_LOSS_FORGET, why);
    agent_release_clear(&sv->releases);
    agent_batch_flush(&sv->batches);
    agent_delivery_abort(&sv->webhooks);
}

void agent_drain_spawner_lost(agent_supervisor_t *sv)
{
    if (sv->context->mode < AGENT_MODE_LEAVING) {
        agent_report_write(sv->context, AGENT_LOG_ERR, "AGT0305", 0,
                           "the spawner process has ended: this supervisor "
                           "ends too, to be started again");
        sv->exit_code = 1;
    }
    sv->is_spawner_lost = true;
    agent_drain_leave(sv, apr_time_from_sec(1), "the spawner has ended");
}

/* The drain time is over: runs are to stop at a checkpoint. */
static void ask_to_stop(agent_supervisor_t *sv)
{
    agent_runner_t *runner;
    agent_lease_t *lease;
    agent_lease_t *next;

    agent_report_write(sv->context, AGENT_LOG_NOTICE, "AGT0351", 0,
                       "drain time is over: %d runs are asked to stop at a "
                       "checkpoint",
                       sv->leases.held);
    sv->drain.ask_at = AGENT_CLOCK_NEVER;
    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        AGENT_RING_EACH_SAFE(lease, next, &runner->group.leases, agent_lease_t,
                             link)
        {
            if (lease->state == AGENT_LEASE_HELD
                && lease->cause == AGENT_CAUSE_NONE) {
                agent_run_end_cancel(sv, lease, AGENT_CAUSE_DRAIN);
            }
        }
    }
}

static apr_time_t step_draining(agent_supervisor_t *sv)
{
    if (sv->leases.held == 0 && agent_batch_is_empty(&sv->batches)
        && agent_release_is_empty(&sv->releases)
        && agent_delivery_is_idle(&sv->webhooks)) {
        agent_drain_leave(sv, FINAL_WRITES, "drained");
        return sv->context->now;
    }
    if (sv->drain.ask_at <= sv->context->now) {
        ask_to_stop(sv);
    }
    return sv->drain.ask_at;
}

static apr_time_t step_leaving(agent_supervisor_t *sv)
{
    bool is_busy = sv->database.state == AGENT_DATABASE_BUSY
        || sv->bulk.state == AGENT_DATABASE_BUSY;

    if (sv->drain.leave_by <= sv->context->now) {
        agent_report_write(sv->context, AGENT_LOG_WARNING, "AGT0353", 0,
                           "the database did not answer in time: the runs "
                           "will be released by the next supervisor");
        sv->context->mode = AGENT_MODE_DONE;
        return sv->context->now;
    }
    if (agent_batch_is_empty(&sv->batches)
        && agent_delivery_is_idle(&sv->webhooks) && !is_busy
        && sv->worker.state != AGENT_WORKER_LEAVING
        && sv->worker.state != AGENT_WORKER_LEFT) {
        agent_worker_leave(sv);
    }
    if (sv->worker.state == AGENT_WORKER_LEFT
        && agent_notify_is_empty(&sv->notify) && !is_busy) {
        sv->context->mode = AGENT_MODE_DONE;
        return sv->context->now;
    }
    return sv->drain.leave_by;
}

apr_time_t agent_drain_step(agent_supervisor_t *sv)
{
    switch (sv->context->mode) {
    case AGENT_MODE_DRAINING:
        return step_draining(sv);
    case AGENT_MODE_LEAVING:
        return step_leaving(sv);
    default:
        return AGENT_CLOCK_NEVER;
    }
}

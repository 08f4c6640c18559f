/* SPDX-License-Identifier: Apache-2.0 */
/* How the supervisor ends; see drain.h. */
#include "drain.h"

#include "base/order.h"
#include "runner/drain.h"
#include "runner/exit.h"
#include "runner/run/run_end.h"

/* For the final writes to the database after a drain, at least; they may take
 * the rest of the drain time. */
#define FINAL_TIMEOUT apr_time_from_sec(5)
/* The part of the drain time in which runs are to stop at a checkpoint: a third
 * of it. */
#define STOP_SHARE 3

void agent_drain_begin(agent_drain_t *drain)
{
    if (drain->context->mode != AGENT_MODE_RUNNING) {
        return;
    }
    agent_report_write(
        drain->context, AGENT_LOG_NOTICE, "AGT0350", 0,
        "draining: no more runs are claimed, %d may finish "
        "within %d s",
        drain->runs->leases.held,
        (int)apr_time_sec(drain->context->config->drain_timeout));
    drain->context->mode = AGENT_MODE_DRAINING;
    drain->cancel_at = drain->context->now
        + drain->context->config->drain_timeout;
    drain->stop_at = drain->cancel_at
        - drain->context->config->drain_timeout / STOP_SHARE;
    /* The renewal stores that this worker is draining. */
    drain->worker->renew_at = drain->context->now;
    agent_runner_drain_all(drain->io->runners, drain->runs);
}

/* A run whose end is still in a pipe is not to be executed again. */
static void read_final_output(agent_runner_io_t *io)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &io->runners->all, agent_runner_t, link)
    {
        agent_runner_read_rest(io, runner);
    }
}

void agent_drain_stop(agent_drain_t *drain, apr_interval_time_t timeout,
                      const char *why)
{
    if (drain->context->mode >= AGENT_MODE_STOPPING) {
        drain->end_by = agent_earlier(drain->end_by,
                                      drain->context->now + timeout);
        return;
    }
    read_final_output(drain->io);
    agent_report_write(drain->context, AGENT_LOG_NOTICE, "AGT0352", 0,
                       "stopping (%s): %d runs are released", why,
                       drain->runs->leases.held);
    drain->context->mode = AGENT_MODE_STOPPING;
    drain->end_by = drain->context->now + timeout;
    /* Their output is still saved; then this worker is marked dead, which
     * requeues its runs. */
    agent_runner_kill_all(drain->io->runners, drain->runs, AGENT_LOSS_FORGET,
                          why);
    agent_release_clear(&drain->runs->releases);
    agent_batch_flush(&drain->runs->batches);
    agent_delivery_abort(drain->webhooks);
}

/* Executing runs are asked to stop at a checkpoint or, without `timeout`, are
 * cancelled: the drain time is over. */
static void end_runs(agent_drain_t *drain, apr_interval_time_t timeout)
{
    agent_runner_t *runner;
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH(runner, &drain->io->runners->all, agent_runner_t, link)
    {
        AGENT_RING_EACH_SAFE(lease, next, &runner->group.leases, agent_lease_t,
                             link)
        {
            if (lease->state != AGENT_LEASE_HELD
                || lease->cause != AGENT_CAUSE_NONE) {
                /* It ends already. */
            }
            else if (timeout > 0) {
                agent_run_end_stop(drain->runs, lease, timeout);
            }
            else {
                agent_run_end_cancel(drain->runs, lease, AGENT_CAUSE_DRAIN);
            }
        }
    }
}

static void end_drain(agent_drain_t *drain)
{
    apr_time_t now = drain->context->now;

    if (drain->cancel_at <= now) {
        agent_report_write(drain->context, AGENT_LOG_NOTICE, "AGT0351", 0,
                           "drain time is over: %d runs are cancelled, and "
                           "continue from their last checkpoint",
                           drain->runs->leases.held);
        drain->stop_at = drain->cancel_at = AGENT_CLOCK_NEVER;
        end_runs(drain, 0);
    }
    else if (drain->stop_at <= now) {
        agent_report_write(drain->context, AGENT_LOG_NOTICE, "AGT0365", 0,
                           "draining: %d runs are asked to stop at a "
                           "checkpoint",
                           drain->runs->leases.held);
        drain->stop_at = AGENT_CLOCK_NEVER;
        end_runs(drain, drain->cancel_at - now);
    }
}

static apr_interval_time_t final_timeout(const agent_drain_t *drain)
{
    apr_interval_time_t rest = drain->cancel_at == AGENT_CLOCK_NEVER
        ? 0
        : drain->cancel_at - drain->context->now;

    return rest > FINAL_TIMEOUT ? rest : FINAL_TIMEOUT;
}

static apr_time_t step_draining(agent_drain_t *drain)
{
    if (drain->runs->leases.held == 0
        && agent_batch_is_empty(&drain->runs->batches)
        && agent_release_is_empty(&drain->runs->releases)
        && agent_delivery_is_idle(drain->webhooks)) {
        agent_drain_stop(drain, final_timeout(drain), "drained");
        return drain->context->now;
    }
    end_drain(drain);
    return drain->stop_at < drain->cancel_at ? drain->stop_at
                                             : drain->cancel_at;
}

static apr_time_t step_stopping(agent_drain_t *drain)
{
    bool is_busy = drain->database->state == AGENT_DATABASE_BUSY
        || drain->second->state == AGENT_DATABASE_BUSY
        || drain->third->state == AGENT_DATABASE_BUSY;

    if (drain->end_by <= drain->context->now) {
        agent_report_write(drain->context, AGENT_LOG_WARNING, "AGT0353", 0,
                           "the database did not answer in time: the runs "
                           "will be released by the next supervisor");
        drain->context->mode = AGENT_MODE_DONE;
        return drain->context->now;
    }
    if (agent_batch_is_empty(&drain->runs->batches)
        && agent_delivery_is_idle(drain->webhooks) && !is_busy
        && drain->worker->state != AGENT_WORKER_DEREGISTERING
        && drain->worker->state != AGENT_WORKER_DEREGISTERED) {
        agent_worker_deregister(drain->worker);
    }
    if (drain->worker->state == AGENT_WORKER_DEREGISTERED
        && agent_notify_is_empty(drain->notify) && !is_busy) {
        drain->context->mode = AGENT_MODE_DONE;
        return drain->context->now;
    }
    return drain->end_by;
}

apr_time_t agent_drain_step(agent_drain_t *drain)
{
    switch (drain->context->mode) {
    case AGENT_MODE_DRAINING:
        return step_draining(drain);
    case AGENT_MODE_STOPPING:
        return step_stopping(drain);
    default:
        return AGENT_CLOCK_NEVER;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How the supervisor ends; see shutdown.h. */
#include "shutdown.h"

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

void agent_shutdown_drain(agent_shutdown_t *shutdown)
{
    if (shutdown->context->mode != AGENT_MODE_RUNNING) {
        return;
    }
    agent_report_write(
        shutdown->context, AGENT_LOG_NOTICE, "AGT0350", 0,
        "draining: no more runs are claimed, %d may finish "
        "within %d s",
        shutdown->runs->leases.held,
        (int)apr_time_sec(shutdown->context->config->drain_timeout));
    shutdown->context->mode = AGENT_MODE_DRAINING;
    shutdown->cancel_at = shutdown->context->now
        + shutdown->context->config->drain_timeout;
    shutdown->stop_at = shutdown->cancel_at
        - shutdown->context->config->drain_timeout / STOP_SHARE;
    /* The renewal stores that this worker is draining. */
    shutdown->worker->renew_at = shutdown->context->now;
    agent_runner_drain_all(shutdown->io->runners, shutdown->runs);
}

/* A run whose end is still in a pipe is not to be executed again. */
static void read_final_output(agent_runner_io_t *io)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &io->runners->all, agent_runner_t, link)
    {
        agent_runner_io_read_rest(io, runner);
    }
}

void agent_shutdown_stop(agent_shutdown_t *shutdown,
                         apr_interval_time_t timeout, const char *why)
{
    if (shutdown->context->mode >= AGENT_MODE_STOPPING) {
        shutdown->end_by = AGENT_MIN(shutdown->end_by,
                                     shutdown->context->now + timeout);
        return;
    }
    read_final_output(shutdown->io);
    agent_report_write(shutdown->context, AGENT_LOG_NOTICE, "AGT0352", 0,
                       "stopping (%s): %d runs are released, within %d ms", why,
                       shutdown->runs->leases.held,
                       (int)apr_time_as_msec(timeout));
    shutdown->context->mode = AGENT_MODE_STOPPING;
    shutdown->end_by = shutdown->context->now + timeout;
    /* Their output is still saved; then this worker is marked dead, which
     * requeues its runs. */
    agent_runner_exit_kill_all(shutdown->io->runners, shutdown->runs,
                               AGENT_LOSS_FORGET, why);
    agent_release_clear(&shutdown->runs->releases);
    agent_batch_flush(&shutdown->runs->batches);
    agent_delivery_abort(shutdown->webhooks);
}

/* Executing runs are asked to stop at a checkpoint or, without `timeout`, are
 * cancelled: the drain time is over. */
static void end_runs(agent_shutdown_t *shutdown, apr_interval_time_t timeout)
{
    agent_runner_t *runner;
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH(runner, &shutdown->io->runners->all, agent_runner_t, link)
    {
        AGENT_RING_EACH_SAFE(lease, next, &runner->group.leases, agent_lease_t,
                             link)
        {
            if (lease->state != AGENT_LEASE_HELD
                || lease->cause != AGENT_CAUSE_NONE) {
                /* It ends already. */
            }
            else if (timeout > 0) {
                agent_run_end_stop(shutdown->runs, lease, timeout);
            }
            else {
                agent_run_end_cancel(shutdown->runs, lease, AGENT_CAUSE_DRAIN);
            }
        }
    }
}

static void end_drain(agent_shutdown_t *shutdown)
{
    apr_time_t now = shutdown->context->now;

    if (shutdown->cancel_at <= now) {
        agent_report_write(shutdown->context, AGENT_LOG_NOTICE, "AGT0351", 0,
                           "drain time is over: %d runs are cancelled, and "
                           "continue from their last checkpoint",
                           shutdown->runs->leases.held);
        shutdown->stop_at = shutdown->cancel_at = AGENT_CLOCK_NEVER;
        end_runs(shutdown, 0);
    }
    else if (shutdown->stop_at <= now) {
        agent_report_write(shutdown->context, AGENT_LOG_NOTICE, "AGT0365", 0,
                           "draining: %d runs are asked to stop at a "
                           "checkpoint",
                           shutdown->runs->leases.held);
        shutdown->stop_at = AGENT_CLOCK_NEVER;
        end_runs(shutdown, shutdown->cancel_at - now);
    }
}

static apr_interval_time_t final_timeout(const agent_shutdown_t *shutdown)
{
    apr_interval_time_t rest = shutdown->cancel_at == AGENT_CLOCK_NEVER
        ? 0
        : shutdown->cancel_at - shutdown->context->now;

    return AGENT_MAX(rest, FINAL_TIMEOUT);
}

static apr_time_t step_draining(agent_shutdown_t *shutdown)
{
    if (shutdown->runs->leases.held == 0
        && agent_batch_is_empty(&shutdown->runs->batches)
        && agent_release_is_empty(&shutdown->runs->releases)
        && agent_delivery_is_idle(shutdown->webhooks)) {
        agent_shutdown_stop(shutdown, final_timeout(shutdown), "drained");
        return shutdown->context->now;
    }
    end_drain(shutdown);
    return AGENT_MIN(shutdown->stop_at, shutdown->cancel_at);
}

static apr_time_t step_stopping(agent_shutdown_t *shutdown)
{
    bool is_busy = shutdown->control->state == AGENT_DATABASE_BUSY
        || shutdown->bulk->state == AGENT_DATABASE_BUSY
        || shutdown->output->state == AGENT_DATABASE_BUSY;

    if (shutdown->end_by <= shutdown->context->now) {
        agent_report_write(shutdown->context, AGENT_LOG_WARNING, "AGT0353", 0,
                           "the database did not answer in time: the runs "
                           "will be released by the next supervisor");
        shutdown->context->mode = AGENT_MODE_DONE;
        return shutdown->context->now;
    }
    if (agent_batch_is_empty(&shutdown->runs->batches)
        && agent_delivery_is_idle(shutdown->webhooks) && !is_busy
        && shutdown->worker->state != AGENT_WORKER_DEREGISTERING
        && shutdown->worker->state != AGENT_WORKER_DEREGISTERED) {
        agent_worker_deregister(shutdown->worker);
    }
    if (shutdown->worker->state == AGENT_WORKER_DEREGISTERED
        && agent_notify_is_empty(shutdown->notify) && !is_busy) {
        shutdown->context->mode = AGENT_MODE_DONE;
        return shutdown->context->now;
    }
    return shutdown->end_by;
}

apr_time_t agent_shutdown_step(agent_shutdown_t *shutdown)
{
    switch (shutdown->context->mode) {
    case AGENT_MODE_DRAINING:
        return step_draining(shutdown);
    case AGENT_MODE_STOPPING:
        return step_stopping(shutdown);
    default:
        return AGENT_CLOCK_NEVER;
    }
}

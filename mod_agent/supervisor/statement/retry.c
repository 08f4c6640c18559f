/* SPDX-License-Identifier: Apache-2.0 */
/* Statements about one run that fail; see retry.h. */
#include "retry.h"

#include "../../core/backoff.h"
#include "../base/order.h"

/* After this many failures that count the run is assumed to be the cause. */
#define MAX_FAILURES 3
/* Pauses after lost connections: they double. A restart takes a while; and a
 * crash is counted for the statement that caused it when that is sent alone
 * several times, which takes a few seconds. */
#define FIRST_PAUSE   apr_time_from_msec(50)
#define LONGEST_PAUSE AGENT_PATIENCE_ATTEMPT

/* From this pause on the log names the run. */
#define REPORTED_PAUSE apr_time_from_sec(1)

/* The server closes all other connections with a notice when a process of it
 * crashes, but the one of that process without. */
static void keep_loss(agent_retry_t *retry, const agent_database_t *database)
{
    if (database->crash_reported_at < database->sent_at) {
        retry->crash_since = database->sent_at;
    }
}

static bool take_loss(agent_retry_t *retry,
                      const agent_retry_statement_t *statement)
{
    agent_context_t *context = statement->worker->context;
    apr_interval_time_t pause = agent_backoff_delay(retry->losses.failures,
                                                    FIRST_PAUSE, LONGEST_PAUSE);

    keep_loss(retry, statement->worker->bulk);
    retry->retry_at = agent_database_after(context, pause);
    if (pause >= REPORTED_PAUSE) {
        agent_report_repeat(context, AGENT_LOG_WARNING, "AGT0380", 0,
                            "%s %.36s is tried again in about %d s: %s",
                            statement->subject, statement->id,
                            (int)apr_time_sec(pause),
                            agent_failure_cause(AGENT_FAILURE_LOST));
    }
    return agent_patience_fail(&retry->losses, statement->others,
                               statement->cost, context->now,
                               context->timing.patience);
}

bool agent_retry_fail(agent_retry_t *retry,
                      const agent_retry_statement_t *statement,
                      agent_failure_t failure)
{
    if (failure == AGENT_FAILURE_LOST) {
        return take_loss(retry, statement);
    }
    retry->crash_since = 0;
    retry->retry_at = agent_database_retry_at(statement->worker->context,
                                              failure);
    return agent_failure_counts(failure) && ++retry->failures >= MAX_FAILURES;
}

/*
 * Not all connections get it: one that was sending is reset, and the notice is
 * lost. After a restart, or when the network or the whole host failed, none
 * gets it. The connection of the attempt may be made again, and be lost once
 * more, before the server has noticed the crash.
 */
bool agent_retry_has_crashed(const agent_worker_t *worker, apr_time_t since)
{
    return worker->control->crash_reported_at >= since
        || worker->bulk->crash_reported_at >= since
        || worker->output->crash_reported_at >= since;
}

void agent_retry_blame(const agent_worker_t *worker,
                       agent_faulty_table_t *faulty,
                       const agent_retry_loss_t *loss, bool has_crashed)
{
    agent_faulty_end_isolation(faulty, loss->deployment_id);
    if (!has_crashed && worker->control->connection != loss->control) {
        return;
    }
    agent_faulty_fail(faulty, loss->deployment_id, loss->sent_at,
                      has_crashed ? 1 : AGENT_FAULTY_FAILURES, loss->why);
    agent_faulty_pause(faulty, loss->deployment_id, loss->lost, has_crashed);
}

bool agent_retry_count_crash(agent_retry_t *retry, const agent_worker_t *worker)
{
    /* An answer to a later statement: what crashed after it was another one. */
    if (worker->bulk->answered_at > retry->losses.last_at) {
        retry->crash_since = 0;
    }
    if (retry->crash_since == 0
        || !agent_retry_has_crashed(worker, retry->crash_since)) {
        return false;
    }
    retry->crash_since = 0;
    return ++retry->failures >= MAX_FAILURES;
}

bool agent_retry_is_at_fault(const agent_retry_t *retry,
                             const agent_worker_t *worker)
{
    return retry->failures > 0
        || (retry->crash_since > 0
            && agent_retry_has_crashed(worker, retry->crash_since));
}

bool agent_retry_waits(const agent_retry_t *retry, const agent_worker_t *worker,
                       apr_time_t *next)
{
    if (agent_retry_waits_for_control(retry, worker)) {
        return true;
    }
    if (retry->retry_at <= worker->context->now) {
        return false;
    }
    *next = AGENT_MIN(*next, retry->retry_at);
    return true;
}

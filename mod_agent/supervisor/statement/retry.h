/* SPDX-License-Identifier: Apache-2.0 */
/* A statement about one run alone, other than with its output, that fails: when
 * it is sent again, and for how long. */
#ifndef AGENT_SUPERVISOR_RETRY_H
#define AGENT_SUPERVISOR_RETRY_H

#include "../lease/faulty.h"
#include "worker.h"

/* A statement of the bulk connection that failed. */
typedef struct agent_retry_statement_t {
    const agent_worker_t *worker;
    /* For the log: of which run or worker, and its id. */
    const char *subject;
    const char *id;
    /* The same statements about other runs that succeeded, and what this one
     * needs, in the measure of these. */
    const agent_patience_saved_t *others;
    apr_size_t cost;
} agent_retry_statement_t;

/*
 * Takes a failure, and sets when the statement is sent again. Returns whether
 * it is given up: after the third failure that counts, or when its connection
 * was lost for as long as the one of a line of output alone may be
 * (lease/patience.h). A cancel and transient failures never give it up.
 */
bool agent_retry_fail(agent_retry_t *retry,
                      const agent_retry_statement_t *statement,
                      agent_failure_t failure);

/* Whether any connection got the notice of a crash of the database since then,
 * which is not 0. */
bool agent_retry_has_crashed(const agent_worker_t *worker, apr_time_t since);

/*
 * Called when a connection is up again, before the statement is sent. If its
 * last attempt crashed its process of the database, that is counted; returns
 * whether the statement is given up.
 */
bool agent_retry_count_crash(agent_retry_t *retry,
                             const agent_worker_t *worker);

/* A connection that was lost during a statement of a deployment, without the
 * notice of a crash, and is made again. */
typedef struct agent_retry_loss_t {
    const char *deployment_id;
    apr_time_t sent_at;
    /* The number of the control connection when it was lost. */
    apr_uint64_t control;
    apr_interval_time_t lost;
    const char *why; /* for the log */
} agent_retry_loss_t;

/*
 * Ends the isolation of its deployment, counts the loss as a failure of it, and
 * pauses it if it is marked; a crash marks it at once. Without a crash the loss
 * does not count if the control connection was lost too: then the database was
 * restarted, or out of reach.
 */
void agent_retry_blame(const agent_worker_t *worker,
                       agent_faulty_table_t *faulty,
                       const agent_retry_loss_t *loss, bool has_crashed);

/* Whether failures of it count, or its last attempt crashed its process of the
 * database. */
bool agent_retry_is_at_fault(const agent_retry_t *retry,
                             const agent_worker_t *worker);

/* Whether its connection was lost and the control connection is not up: that
 * one would not get the notice of a crash. */
static inline bool agent_retry_waits_for_control(const agent_retry_t *retry,
                                                 const agent_worker_t *worker)
{
    return retry->losses.failures > 0 && worker->control->lost_at > 0;
}

/* Whether it waits since it failed; *next becomes the time at which it is due
 * again, if that is known and earlier. */
bool agent_retry_waits(const agent_retry_t *retry, const agent_worker_t *worker,
                       apr_time_t *next);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Statements about one run that fail; see retry.h. */
#include "retry.h"

#include "../../core/backoff.h"
#include "../base/order.h"
#include "database.h"

/* After this many failures that count the run is assumed to be the cause. */
#define MAX_FAILURES 3
/* Pauses after lost connections: they double. A restart takes a while; and a
 * crash is counted for the line of output that caused it when that is sent
 * alone several times, which takes a few seconds. */
#define FIRST_PAUSE   apr_time_from_msec(50)
#define LONGEST_PAUSE AGENT_PATIENCE_ATTEMPT

bool agent_retry_fail(agent_retry_t *retry, const agent_context_t *context,
                      agent_failure_t failure,
                      const agent_patience_saved_t *others, apr_size_t cost)
{
    if (failure == AGENT_FAILURE_LOST) {
        retry->retry_at = agent_database_after(
            context,
            agent_backoff_delay(retry->losses.failures, FIRST_PAUSE,
                                LONGEST_PAUSE));
        return agent_patience_fail(&retry->losses, others, cost, context->now,
                                   context->timing.patience);
    }
    retry->retry_at = agent_database_retry_at(context, failure);
    return agent_failure_counts(failure) && ++retry->failures >= MAX_FAILURES;
}

bool agent_retry_waits(const agent_retry_t *retry, apr_time_t now,
                       apr_time_t *next)
{
    if (retry->retry_at <= now) {
        return false;
    }
    *next = AGENT_MIN(*next, retry->retry_at);
    return true;
}

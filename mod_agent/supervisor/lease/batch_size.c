/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of statements that save output; see batch_size.h. */
#include "batch_size.h"

#include "../base/order.h"

/* Time for which a run leaves the shared batches. */
#define DEDICATED_TIME apr_time_from_sec(5)
/* A shared batch that took longer delays others; the part of that time for
 * which a run or deployment is the reason. The limit of the next batch depends
 * on AGENT_BATCH_SIZE_TARGET alone. */
#define SLOW_BATCH apr_time_from_msec(200)
#define SLOW_PART  apr_time_from_msec(50)
/* Output is cheap again when it took less than can be told from a busy machine,
 * or when AGENT_BATCH_SIZE_TARGET would save this cost. */
#define CHEAP_TIME apr_time_from_msec(25)
#define CHEAP_COST ((apr_size_t)1024 * 1024)

apr_size_t agent_batch_size_cost(int lines, apr_size_t bytes)
{
    return (apr_size_t)lines * AGENT_BATCH_SIZE_LINE + bytes;
}

apr_size_t agent_batch_size_limit(const agent_batch_size_t *size)
{
    if (size->needs_long_limit || size->lines_alone > 0) {
        return 1;
    }
    return size->limit > 0 ? size->limit : AGENT_BATCH_SIZE_FIRST;
}

/* The cost for which AGENT_BATCH_SIZE_TARGET would do; neither is 0. */
static apr_size_t fit(apr_size_t cost, apr_interval_time_t elapsed)
{
    double fits = (double)cost * (double)AGENT_BATCH_SIZE_TARGET
        / (double)AGENT_MAX(elapsed, 1);

    return (apr_size_t)AGENT_MIN(fits, (double)AGENT_BATCH_SIZE_MAX);
}

void agent_batch_size_save(agent_batch_size_t *size, apr_size_t cost,
                           apr_interval_time_t elapsed)
{
    apr_size_t last = size->limit > 0 ? size->limit : AGENT_BATCH_SIZE_FIRST;
    apr_size_t limit = fit(cost, elapsed);
    /* Slowly after a failure, which may come again. */
    apr_size_t least = AGENT_MIN(last + last / 4 + 1, AGENT_BATCH_SIZE_MIN);

    limit = AGENT_MIN(limit, last * 2);
    size->limit = AGENT_MAX(limit, least);
    size->lock_waits = 0;
    size->needs_long_limit = size->needs_long_limit
        && elapsed > AGENT_BATCH_SIZE_TIMEOUT / 2;
    if (size->lines_alone > 0) {
        size->lines_alone--;
    }
}

void agent_batch_size_fail(agent_batch_size_t *size, apr_size_t cost,
                           apr_interval_time_t elapsed)
{
    apr_size_t limit = fit(cost, elapsed);

    limit = AGENT_MIN(limit, cost / 2);
    size->limit = AGENT_MAX(limit, (apr_size_t)1);
}

void agent_batch_size_crash(agent_batch_size_t *size, int lines)
{
    size->lines_alone = AGENT_MAX(lines, size->lines_alone);
}

bool agent_batch_size_is_slow(apr_size_t part, apr_size_t cost,
                              apr_interval_time_t elapsed)
{
    return elapsed > SLOW_BATCH
        && (double)elapsed * (double)part > (double)SLOW_PART * (double)cost;
}

void agent_batch_size_dedicate(agent_batch_size_t *size, apr_time_t now)
{
    size->dedicated_until = now + DEDICATED_TIME;
}

bool agent_batch_size_is_dedicated(const agent_batch_size_t *size,
                                   apr_time_t now)
{
    return size->dedicated_until > now;
}

void agent_batch_size_extend(agent_batch_size_t *size, apr_size_t cost,
                             apr_interval_time_t elapsed, apr_time_t now)
{
    if (agent_batch_size_is_dedicated(size, now) && elapsed > CHEAP_TIME
        && fit(cost, elapsed) < CHEAP_COST) {
        agent_batch_size_dedicate(size, now);
    }
}

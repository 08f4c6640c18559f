/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of statements that save output; see pace.h. */
#include "pace.h"

#include "../base/order.h"

/* A run leaves the shared batches for this time. */
#define DEDICATED_TIME apr_time_from_sec(5)
/* A shared batch that took longer delays others; the part of it that a run has
 * to have taken. */
#define SLOW_BATCH apr_time_from_msec(200)
#define SLOW_PART  apr_time_from_msec(50)
/* Output is cheap again when the shortest part of AGENT_PACE_AIM that can be
 * told from a busy machine would do, or when that time saves this weight. */
#define CHEAP_TIME   apr_time_from_msec(25)
#define CHEAP_WEIGHT ((apr_size_t)1024 * 1024)

apr_size_t agent_pace_weigh(int lines, apr_size_t bytes)
{
    return (apr_size_t)lines * AGENT_PACE_LINE + bytes;
}

apr_size_t agent_pace_limit(const agent_pace_t *pace)
{
    if (pace->needs_long_limit) {
        return 1;
    }
    return pace->limit > 0 ? pace->limit : AGENT_PACE_FIRST;
}

/* The weight for which AGENT_PACE_AIM would do; neither is 0. */
static apr_size_t fit(apr_size_t weight, apr_interval_time_t elapsed)
{
    double fits = (double)weight * (double)AGENT_PACE_AIM
        / (double)AGENT_MAX(elapsed, 1);

    return (apr_size_t)AGENT_MIN(fits, (double)AGENT_PACE_MOST);
}

void agent_pace_save(agent_pace_t *pace, apr_size_t weight,
                     apr_interval_time_t elapsed)
{
    apr_size_t last = pace->limit > 0 ? pace->limit : AGENT_PACE_FIRST;
    apr_size_t limit = fit(weight, elapsed);
    /* Slowly after a failure, which may come again. */
    apr_size_t least = AGENT_MIN(last + last / 4 + 1, AGENT_PACE_LEAST);

    limit = AGENT_MIN(limit, last * 2);
    pace->limit = AGENT_MAX(limit, least);
    pace->needs_long_limit = pace->needs_long_limit
        && elapsed > AGENT_PACE_LONGEST / 2;
}

void agent_pace_fail(agent_pace_t *pace, apr_size_t weight,
                     apr_interval_time_t elapsed)
{
    apr_size_t limit = fit(weight, elapsed);

    limit = AGENT_MIN(limit, weight / 2);
    pace->limit = AGENT_MAX(limit, (apr_size_t)1);
}

bool agent_pace_is_slow(apr_size_t part, apr_size_t weight,
                        apr_interval_time_t elapsed)
{
    return elapsed > SLOW_BATCH
        && (double)elapsed * (double)part > (double)SLOW_PART * (double)weight;
}

void agent_pace_dedicate(agent_pace_t *pace, apr_time_t now)
{
    pace->dedicated_until = now + DEDICATED_TIME;
}

bool agent_pace_is_dedicated(const agent_pace_t *pace, apr_time_t now)
{
    return pace->dedicated_until > now;
}

void agent_pace_extend(agent_pace_t *pace, apr_size_t weight,
                       apr_interval_time_t elapsed, apr_time_t now)
{
    if (agent_pace_is_dedicated(pace, now) && elapsed > CHEAP_TIME
        && fit(weight, elapsed) < CHEAP_WEIGHT) {
        agent_pace_dedicate(pace, now);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated clock, windows, and an exact log to check decisions, for the
 * limiter's tests. */
#ifndef AGENT_T_UNIT_RATELIMIT_SIM_H
#define AGENT_T_UNIT_RATELIMIT_SIM_H

#include <stdlib.h>
#include <string.h>

#include "../../mod_ratelimit_regional/counter/window_rebuild.h"

#define SIM_OWNER 0x5eed5eed5eed5eedU

/* A clock in microseconds, to test rounding to milliseconds. */
typedef struct sim_time_t {
    uint64_t us;
} sim_time_t;

static inline void sim_read(rlr_time_t *now, void *baton)
{
    const sim_time_t *time = baton;

    now->floor_ms = time->us / 1000;
    now->ceil_ms = (time->us + 999) / 1000;
}

/* The factor of the amount of work, from the environment. */
static inline double sim_effort(void)
{
    const char *text = getenv("RATELIMIT_TEST_EFFORT");
    double effort = text != NULL ? atof(text) : 1;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    effort /= 8;
#endif
    return effort;
}

/* Likewise for single-threaded tests, where the thread sanitizer finds
 * nothing. */
static inline double sim_effort_alone(void)
{
#if defined(__SANITIZE_THREAD__)
    return sim_effort() / 20;
#else
    return sim_effort();
#endif
}

static inline uint64_t sim_random(uint64_t *seed)
{
    uint64_t x = *seed;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *seed = x;
    return x * 0x2545f4914f6cdd1dU;
}

static inline void sim_build(rlr_window_t *window, rlr_limit_t limit,
                             const rlr_clock_t *clock)
{
    rlr_window_copy_t copy;

    rlr_window_close(&copy, window, 0, false, clock);
    rlr_window_copy_fit(&copy, NULL, limit);
    rlr_window_begin(window, &copy, clock);
    rlr_window_finish(window, SIM_OWNER, limit, &copy);
}

/* The times of the last admissions, as many as an interval may have. */
typedef struct sim_log_t {
    uint64_t *times; /* of `size`; admission i is at i % size */
    uint64_t size;
    uint64_t total;
} sim_log_t;

static inline void sim_log_make(sim_log_t *log, uint64_t size)
{
    log->times = calloc(size, sizeof(*log->times));
    log->size = size;
    log->total = 0;
}

static inline void sim_log_drop(sim_log_t *log)
{
    free(log->times);
}

/* The time of the admission with `younger` ones after it; 0 if none. */
static inline uint64_t sim_log_at(const sim_log_t *log, uint64_t younger)
{
    return younger < log->total && younger < log->size
        ? log->times[(log->total - 1 - younger) % log->size]
        : 0;
}

/* Whether at least `count` were admitted after `since_us`. */
static inline bool sim_log_has(const sim_log_t *log, uint64_t count,
                               uint64_t since_us)
{
    return count == 0
        || (log->total >= count && sim_log_at(log, count - 1) > since_us);
}

static inline void sim_log_add(sim_log_t *log, uint64_t us)
{
    log->times[log->total++ % log->size] = us;
}

#endif

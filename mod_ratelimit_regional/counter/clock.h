/* SPDX-License-Identifier: Apache-2.0 */
/* The time of decisions. A decision may read the clock more than once, so it
 * takes a clock and not a time. */
#ifndef RLR_CLOCK_H
#define RLR_CLOCK_H

#include <stdint.h>

/*
 * A reading of a monotonic clock common to all processes, in milliseconds
 * since an epoch that is constant while the shared memory exists. Marks are
 * set at ceil_ms and expire by floor_ms, so that rounding only makes an
 * interval longer. ceil_ms is floor_ms or floor_ms + 1.
 */
typedef struct rlr_time_t {
    uint64_t floor_ms;
    uint64_t ceil_ms;
} rlr_time_t;

/* read() stores the time in *now and is passed `baton`. It must not block; a
 * decision may call it several times, from any thread. */
typedef struct rlr_clock_t {
    void (*read)(rlr_time_t *now, void *baton);
    void *baton;
} rlr_clock_t;

/* CLOCK_MONOTONIC, which does not jump. */
extern const rlr_clock_t rlr_clock_monotonic;

/* Returns its present time. */
static inline rlr_time_t rlr_clock_now(void)
{
    rlr_time_t now;

    rlr_clock_monotonic.read(&now, rlr_clock_monotonic.baton);
    return now;
}

#endif

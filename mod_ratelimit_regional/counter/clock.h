/* SPDX-License-Identifier: Apache-2.0 */
/* The time that decisions are made at. A decision may need to look at the
 * clock twice, so it is given a way to read it, not a reading. */
#ifndef RLR_CLOCK_H
#define RLR_CLOCK_H

#include <stdint.h>

/*
 * One reading of a monotonic clock that all processes share, in milliseconds
 * since any origin that stays the same while the shared memory lives. The
 * window stamps with ceil_ms and ages with floor_ms, so that rounding can only
 * make an interval longer. ceil_ms is floor_ms or floor_ms + 1.
 */
typedef struct rlr_time_t {
    uint64_t floor_ms;
    uint64_t ceil_ms;
} rlr_time_t;

/* Reads the time into *now; called with the baton given beside it. Must not
 * block; may be called several times by one decision, from any thread. */
typedef struct rlr_clock_t {
    void (*read)(rlr_time_t *now, void *baton);
    void *baton;
} rlr_clock_t;

/* CLOCK_MONOTONIC: the wall clock may jump, this one does not. */
extern const rlr_clock_t rlr_clock_monotonic;

#endif

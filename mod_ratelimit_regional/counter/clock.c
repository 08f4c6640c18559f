/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the machine's monotonic clock. */
#include "clock.h"

#include <stddef.h>
#include <time.h>

static void read_monotonic(rlr_time_t *now, void *baton)
{
    struct timespec ts;
    uint32_t rest_ns;

    /* Cannot fail on a system that has this clock. */
    clock_gettime(CLOCK_MONOTONIC, &ts);
    rest_ns = (uint32_t)ts.tv_nsec % 1000000U;
    now->floor_ms = (uint64_t)ts.tv_sec * 1000
        + (uint32_t)ts.tv_nsec / 1000000U;
    now->ceil_ms = now->floor_ms + (rest_ns != 0);
}

const rlr_clock_t rlr_clock_monotonic = {read_monotonic, NULL};

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the clocks that nobody sets; see clock.h. */
#include "clock.h"

#include <time.h>

static apr_time_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return apr_time_from_sec(now.tv_sec) + now.tv_nsec / 1000;
}

apr_time_t agent_clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

apr_time_t agent_clock_boot_now(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

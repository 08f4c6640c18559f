/* SPDX-License-Identifier: Apache-2.0 */
/* Reads CLOCK_MONOTONIC; see clock.h. */
#include "clock.h"

#include <time.h>

apr_time_t agent_clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return apr_time_from_sec(now.tv_sec) + now.tv_nsec / 1000;
}

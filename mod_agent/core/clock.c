/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the monotonic clocks; see clock.h. */
#include "clock.h"

#include <sys/timerfd.h>
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

int agent_clock_timer_open(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

bool agent_clock_timer_set(int fd, apr_time_t due)
{
    struct itimerspec spec = {.it_value = {0, 0}};

    if (due != AGENT_CLOCK_NEVER) {
        spec.it_value.tv_sec = (time_t)apr_time_sec(due);
        /* 0 and 0 would stop the timer. */
        spec.it_value.tv_nsec = (long)apr_time_usec(due) * 1000 + 1;
    }
    return timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0;
}

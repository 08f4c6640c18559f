/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock, for timers: setting the system time does not change
 * it. */
#ifndef AGENT_CORE_CLOCK_H
#define AGENT_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <apr_time.h>

/* The due time of a timer that is not set. */
#define AGENT_CLOCK_NEVER ((apr_time_t)INT64_MAX)

/* Returns the microseconds of CLOCK_MONOTONIC; only differences have a
 * meaning. */
apr_time_t agent_clock_now(void);

/* Returns the microseconds of CLOCK_BOOTTIME, which also runs while the host is
 * suspended: for expiry times, which must not be delayed by suspend. */
apr_time_t agent_clock_boot_now(void);

/* Returns a descriptor that can be read from the time of
 * agent_clock_timer_set() on, also after a suspension of the host, which stops
 * the time-out of poll(); the caller closes it. -1: the kernel has no such
 * timer. */
int agent_clock_timer_open(void);

/* due: of agent_clock_boot_now(); AGENT_CLOCK_NEVER: never. The descriptor can
 * no longer be read before. Returns false if the timer cannot be set. */
bool agent_clock_timer_set(int fd, apr_time_t due);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Time for waiting: a clock that nobody can set. */
#ifndef AGENT_RUNNER_CLOCK_H
#define AGENT_RUNNER_CLOCK_H

#include <stdint.h>

#include <apr_time.h>

/* Something that waits for no point in time. */
#define RUNNER_NEVER ((apr_time_t)INT64_MAX)

/* Microseconds of CLOCK_MONOTONIC: only differences mean anything. */
apr_time_t runner_clock_now(void);

#endif

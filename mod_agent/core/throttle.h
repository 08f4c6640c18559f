/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits a log line that may repeat quickly to one a minute, and counts the
 * lines that were suppressed. A zeroed throttle is ready for use. Any thread
 * may call it at any time.
 */
#ifndef AGENT_CORE_THROTTLE_H
#define AGENT_CORE_THROTTLE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <apr_time.h>

typedef struct agent_throttle_t {
    /* 0 = never. */
    _Atomic apr_time_t logged_at;
    atomic_uint suppressed;
} agent_throttle_t;

/*
 * Whether the line may be logged now; now is the time of any clock. *suppressed
 * is then the number of lines suppressed since the last one. suppressed may be
 * NULL.
 */
bool agent_throttle_pass(agent_throttle_t *throttle, apr_time_t now,
                         unsigned *suppressed);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential back-off: the delay before the next attempt. */
#ifndef AGENT_CORE_BACKOFF_H
#define AGENT_CORE_BACKOFF_H

#include <apr_time.h>

/* first, doubled for each failure before the last one, and at most longest.
 * failures: number of earlier failures in a row; 0 gives first. */
apr_interval_time_t agent_backoff_delay(int failures, apr_interval_time_t first,
                                        apr_interval_time_t longest);

#endif

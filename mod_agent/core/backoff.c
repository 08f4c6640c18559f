/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential back-off; see backoff.h. */
#include "backoff.h"

apr_interval_time_t agent_backoff_delay(int failures, apr_interval_time_t first,
                                        apr_interval_time_t longest)
{
    apr_interval_time_t delay = first;

    for (int i = 0; i < failures && delay < longest; i++) {
        delay *= 2;
    }
    return delay < longest ? delay : longest;
}

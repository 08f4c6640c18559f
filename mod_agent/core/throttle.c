/* SPDX-License-Identifier: Apache-2.0 */
/* Limits repeated log lines to one a minute; see throttle.h. */
#include "throttle.h"

#define INTERVAL apr_time_from_sec(60)

bool agent_throttle_pass(agent_throttle_t *throttle, apr_time_t now,
                         unsigned *suppressed)
{
    apr_time_t last = atomic_load(&throttle->logged_at);
    unsigned count;

    if ((last != 0 && now - last < INTERVAL)
        || !atomic_compare_exchange_strong(&throttle->logged_at, &last, now)) {
        atomic_fetch_add(&throttle->suppressed, 1);
        return false;
    }
    count = atomic_exchange(&throttle->suppressed, 0);
    if (suppressed != NULL) {
        *suppressed = count;
    }
    return true;
}

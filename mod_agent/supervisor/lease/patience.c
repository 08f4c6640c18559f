/* SPDX-License-Identifier: Apache-2.0 */
/* Lines alone that fail for a while; see patience.h. */
#include "patience.h"

#include "../base/order.h"

bool agent_patience_fail(agent_patience_t *patience, apr_time_t now,
                         apr_time_t saved_at, apr_interval_time_t limit)
{
    if (patience->failures++ == 0) {
        patience->first_at = now;
    }
    else if (saved_at > patience->last_at) {
        patience->beside_others += AGENT_MIN(now - patience->last_at,
                                             AGENT_PATIENCE_ATTEMPT);
    }
    patience->last_at = now;
    return patience->beside_others >= limit
        || now - patience->first_at >= AGENT_PATIENCE_MOST * limit;
}

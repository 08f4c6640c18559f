/* SPDX-License-Identifier: Apache-2.0 */
/* Lines alone that fail for a while; see patience.h. */
#include "patience.h"

#include "../base/order.h"

/* The largest power of two that is not more than the cost. */
static int find_power(apr_size_t cost)
{
    int power = 0;

    while (power < AGENT_PATIENCE_COSTS - 1 && cost >> power > 1) {
        power++;
    }
    return power;
}

void agent_patience_save(agent_patience_saved_t *saved, apr_size_t cost,
                         apr_time_t now)
{
    for (int i = find_power(cost); i >= 0; i--) {
        saved->at[i] = now;
    }
}

bool agent_patience_fail(agent_patience_t *patience,
                         const agent_patience_saved_t *saved, apr_size_t cost,
                         apr_time_t now, apr_interval_time_t limit)
{
    if (patience->failures++ == 0) {
        patience->first_at = now;
    }
    else if (saved->at[find_power(cost)] > patience->last_at) {
        patience->beside_others += AGENT_MIN(now - patience->last_at,
                                             AGENT_PATIENCE_ATTEMPT);
    }
    patience->last_at = now;
    return patience->beside_others >= limit
        || now - patience->first_at >= AGENT_PATIENCE_MOST * limit;
}

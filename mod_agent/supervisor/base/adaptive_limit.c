/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that a statement may ask for; see adaptive_limit.h. */
#include "adaptive_limit.h"

#include "order.h"

void agent_adaptive_limit_init(agent_adaptive_limit_t *limit, int max)
{
    limit->current = max;
    limit->max = max;
}

void agent_adaptive_limit_raise(agent_adaptive_limit_t *limit)
{
    limit->current = AGENT_MIN(limit->current * 2, limit->max);
}

void agent_adaptive_limit_lower(agent_adaptive_limit_t *limit, int asked)
{
    limit->current = AGENT_MAX(asked / 2, 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that a statement may ask for; see limit.h. */
#include "limit.h"

void agent_limit_init(agent_limit_t *limit, int most)
{
    limit->now = most;
    limit->most = most;
}

void agent_limit_raise(agent_limit_t *limit)
{
    limit->now = limit->now * 2 < limit->most ? limit->now * 2 : limit->most;
}

void agent_limit_lower(agent_limit_t *limit, int asked)
{
    limit->now = asked > 1 ? asked / 2 : 1;
}

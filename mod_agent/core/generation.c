/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies a generation of the server and tells its age; see generation.h. */
#include "generation.h"

void agent_generation_begin(agent_generation_t *generation)
{
    agent_uuid_v7(generation->id);
    generation->begun_at = agent_clock_now();
}

apr_int64_t agent_generation_age_ms(const agent_generation_t *generation)
{
    apr_time_t age = agent_clock_now() - generation->begun_at;

    return age > 0 ? apr_time_as_msec(age) : 0;
}

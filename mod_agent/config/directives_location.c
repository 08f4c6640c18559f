/* SPDX-License-Identifier: Apache-2.0 */
/* Directives of locations about what their requests create: how long threads
 * and items are kept, and the headers that runs get. */
#include "directives.h"

#include "config.h"
#include "value.h"

/* Up to ten years, as the API. */
static const agent_duration_range_t ttl_range = {1, 5256000, "min", false,
                                                 true};

const char *agent_directive_thread_ttl(cmd_parms *cmd, void *dir,
                                       const char *arg)
{
    agent_dir_config_t *config = dir;

    return agent_value_duration(&config->thread_ttl, cmd, arg, &ttl_range);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of hosts; see host.h. */
#include "host.h"

#include "../private.h"
#include "conftree.h"

void agent_host_find_handlers(agent_server_config_t *config)
{
    config->has_platform = agent_conftree_has_word("SetHandler",
                                                   AGENT_PLATFORM_HANDLER);
    config->has_server = agent_conftree_has_word("SetHandler",
                                                 AGENT_SERVER_HANDLER);
}

bool agent_host_is_any(const agent_server_config_t *config)
{
    return config->graphs->nelts > 0 || config->has_platform
        || config->has_server;
}

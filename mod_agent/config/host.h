/* SPDX-License-Identifier: Apache-2.0 */
/* Which handlers of the module the (virtual) hosts have. */
#ifndef AGENT_CONFIG_HOST_H
#define AGENT_CONFIG_HOST_H

#include <stdbool.h>

#include "config.h"

/* Finds them; called when the configuration has been read. */
void agent_host_find_handlers(agent_server_config_t *config);

/* Whether any host has one, or a graph: with a database the server has waiters,
 * and a supervisor. */
bool agent_host_is_any(const agent_server_config_t *config);

#endif

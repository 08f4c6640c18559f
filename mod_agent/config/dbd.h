/* SPDX-License-Identifier: Apache-2.0 */
/* Values of mod_dbd's directives. */
#ifndef AGENT_CONFIG_DBD_H
#define AGENT_CONFIG_DBD_H

#include "config.h"

/* Returns NULL when mod_dbd is loaded and configured for PostgreSQL, else the
 * text of the error, in pool or a constant. */
const char *agent_dbd_check(const agent_server_config_t *config,
                            apr_pool_t *pool);

/* Returns the connection string for connections outside requests:
 * AgentDatabase, else that of DBDParams; NULL when both are absent. */
const char *agent_dbd_conninfo(const agent_server_config_t *config,
                               apr_pool_t *pool);

/* Returns the connection string of DBDParams where a new connection needs
 * nothing else; NULL where mod_dbd also executes DBDInitSQL on it. */
const char *agent_dbd_plain_params(apr_pool_t *pool);

/* Whether the connections of requests and the others have the same connection
 * string. */
bool agent_dbd_is_shared(const agent_server_config_t *config, apr_pool_t *pool);

/* Returns DBDMax, or mod_dbd's default. */
int agent_dbd_max(apr_pool_t *pool);

#endif

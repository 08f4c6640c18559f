/* SPDX-License-Identifier: Apache-2.0 */
/* The check of the database before httpd starts. */
#ifndef AGENT_STARTUP_H
#define AGENT_STARTUP_H

#include "config/config.h"

/*
 * Returns false, after logging why, if the database is reachable and belongs to
 * another region than this server. Stores the limits of accounts, logs the
 * deployments that they do not permit, and warns of accounts in a Require or an
 * AgentLimit that do not exist. To be called in post_config of the first start;
 * takes at most AgentDBConnectTimeout, AgentDBQueryTimeout and 5 s together.
 * conninfo: of the database.
 */
bool agent_startup_check(const agent_server_config_t *config,
                         const char *conninfo, server_rec *server,
                         apr_pool_t *pool);

#endif

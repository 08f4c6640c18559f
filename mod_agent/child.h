/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and stops a child of httpd. */
#ifndef AGENT_CHILD_H
#define AGENT_CHILD_H

#include "http/call.h"

/* Returns the settings of all database connections except the supervisor's; in
 * pool. */
agent_db_settings_t agent_child_db_settings(const agent_server_config_t *config,
                                            apr_pool_t *pool);

/* Creates the data of a child, in child_init after that of mod_dbd; without a
 * database, only the data for requests that need none. NULL when the start
 * failed, which is logged. */
agent_child_t *agent_child_start(server_rec *server, apr_pool_t *pool);

/* Ends the waits of requests, in child_stopping; if graceful, requests that
 * wait for the end of a run continue for AgentDrainTimeout. */
void agent_child_stop(const agent_child_t *child, bool graceful);

#endif

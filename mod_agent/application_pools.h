/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of applications: their programs, arguments and environments. */
#ifndef AGENT_APPLICATION_POOLS_H
#define AGENT_APPLICATION_POOLS_H

#include "config/config.h"
#include "config/graph.h"
#include "supervisor/base/pool_config.h"

/*
 * Sets the members that are specific to the pool of key->application: name,
 * program, arguments, directory, environment, application. runners->uid must be
 * set before. Borrows from config; the rest is in pool. Returns NULL, or the
 * error message, in pool: there is no program of its language.
 */
const char *agent_application_pools_fill(agent_pool_config_t *runners,
                                         const agent_server_config_t *config,
                                         const agent_graph_pool_t *key,
                                         apr_pool_t *pool);

/* Checks whether the user of a filled pool may enter the application's
 * directory and execute its runner. Returns NULL, or the error message, in
 * pool. */
const char *agent_application_pools_check(const agent_pool_config_t *runners,
                                          const agent_server_config_t *config,
                                          const agent_graph_pool_t *key,
                                          apr_pool_t *pool);

#endif

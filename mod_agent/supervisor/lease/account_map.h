/* SPDX-License-Identifier: Apache-2.0 */
/* The accounts of the deployments that this host serves. */
#ifndef AGENT_SUPERVISOR_ACCOUNT_MAP_H
#define AGENT_SUPERVISOR_ACCOUNT_MAP_H

#include <apr_hash.h>

typedef struct agent_account_map_t {
    /* Deployment id -> its account's id, if that is another one. */
    apr_hash_t *ids;
    apr_pool_t *pool;
} agent_account_map_t;

void agent_account_map_init(agent_account_map_t *map, apr_pool_t *pool);

/* Removes all deployments: before those that are served now are set. */
void agent_account_map_clear(agent_account_map_t *map);

/* Sets the account of a deployment; both ids are copied. */
void agent_account_map_set(agent_account_map_t *map, const char *deployment_id,
                           const char *account_id);

/* Returns the id of the deployment's account; deployment_id for a deployment
 * that is not in the map, which is an account of its own. */
const char *agent_account_map_find(const agent_account_map_t *map,
                                   const char *deployment_id);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The accounts of deployments; see account_map.h. */
#include "account_map.h"

#include <string.h>

#include <apr_strings.h>

void agent_account_map_init(agent_account_map_t *map, apr_pool_t *pool)
{
    apr_pool_create(&map->pool, pool);
    map->ids = apr_hash_make(map->pool);
}

void agent_account_map_clear(agent_account_map_t *map)
{
    apr_pool_clear(map->pool);
    map->ids = apr_hash_make(map->pool);
}

void agent_account_map_set(agent_account_map_t *map, const char *deployment_id,
                           const char *account_id)
{
    if (strcmp(agent_account_map_find(map, deployment_id), account_id) != 0) {
        apr_hash_set(map->ids, apr_pstrdup(map->pool, deployment_id),
                     APR_HASH_KEY_STRING, apr_pstrdup(map->pool, account_id));
    }
}

const char *agent_account_map_find(const agent_account_map_t *map,
                                   const char *deployment_id)
{
    const char *account_id = apr_hash_get(map->ids, deployment_id,
                                          APR_HASH_KEY_STRING);

    return account_id != NULL ? account_id : deployment_id;
}

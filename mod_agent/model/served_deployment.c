/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of deployments; see served_deployment.h. */
#include "served_deployment.h"

#include <apr_hash.h>
#include <apr_strings.h>

#include "../core/deployment.h"
#include "../core/lock.h"

struct agent_served_deployments_t {
    /* Protects the members below and their pool; never held during a
     * statement. */
    agent_lock_t *lock;
    apr_hash_t *ids;
    apr_pool_t *pool;
};

static const agent_statement_t declare_deployment = {
    .name = "agent_declare_deployment",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body from agent.declare_deployment($1, $2)"};

static void fill_params(const char *params[2], const char *deployment,
                        apr_pool_t *pool)
{
    const char *account_id = agent_deployment_account(deployment);

    params[0] = agent_deployment_name(deployment, pool);
    params[1] = account_id != NULL ? account_id : AGENT_ACCOUNT_ID;
}

apr_status_t agent_served_deployments_create(agent_served_deployments_t **out,
                                             apr_pool_t *pool)
{
    agent_served_deployments_t *table = apr_pcalloc(pool, sizeof(*table));
    apr_status_t rv;

    /* The hash allocates when it grows: a pool that only it uses. */
    apr_pool_create(&table->pool, pool);
    table->ids = apr_hash_make(table->pool);
    apr_hash_set(table->ids, AGENT_DEPLOYMENT_NAME, APR_HASH_KEY_STRING,
                 AGENT_DEPLOYMENT_ID);
    rv = agent_lock_create(&table->lock, pool);
    *out = table;
    return rv;
}

static const char *get_id(agent_served_deployments_t *table, const char *name)
{
    const char *id;

    agent_lock_take(table->lock);
    id = apr_hash_get(table->ids, name, APR_HASH_KEY_STRING);
    agent_lock_release(table->lock);
    return id;
}

/* Returns the id in the table, which another thread may have added first. */
static const char *add_id(agent_served_deployments_t *table, const char *name,
                          const char *id)
{
    const char *found;

    agent_lock_take(table->lock);
    found = apr_hash_get(table->ids, name, APR_HASH_KEY_STRING);
    if (found == NULL) {
        found = apr_pstrdup(table->pool, id);
        apr_hash_set(table->ids, apr_pstrdup(table->pool, name),
                     APR_HASH_KEY_STRING, found);
    }
    agent_lock_release(table->lock);
    return found;
}

apr_status_t agent_served_deployment_declare(
    const char **id, agent_served_deployments_t *table, agent_db_pool_t *db,
    const char *deployment, agent_error_t **err, apr_pool_t *pool)
{
    const char *params[2];
    const char *body;
    apr_status_t rv;

    *id = get_id(table, deployment);
    if (*id != NULL) {
        return APR_SUCCESS;
    }
    fill_params(params, deployment, pool);
    rv = agent_db_pool_call(&body, db, &declare_deployment, params, err, pool);
    if (rv == APR_SUCCESS) {
        *id = add_id(table, deployment, body);
    }
    return rv;
}

apr_status_t agent_served_deployment_declare_on(agent_db_t *db,
                                                const char *deployment,
                                                agent_error_t **err,
                                                apr_pool_t *pool)
{
    const char *params[2];
    const char *body;
    agent_db_result_t *result;
    apr_status_t rv;

    fill_params(params, deployment, pool);
    rv = agent_db_query(&result, db, &declare_deployment, params, err, pool);
    return rv == APR_SUCCESS ? agent_db_read_code(&body, result, err, pool)
                             : rv;
}

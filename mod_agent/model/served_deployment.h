/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of the deployments that a child serves, read from the database once
 * each. */
#ifndef AGENT_MODEL_SERVED_DEPLOYMENT_H
#define AGENT_MODEL_SERVED_DEPLOYMENT_H

#include "../db/pool.h"

typedef struct agent_served_deployments_t agent_served_deployments_t;

/* Makes an empty table in pool; for all threads of a child. */
apr_status_t agent_served_deployments_create(agent_served_deployments_t **out,
                                             apr_pool_t *pool);

/*
 * *id: the id of a deployment (core/deployment.h), as long as the table lives.
 * The first call for a deployment other than `default` queries the database,
 * which creates the deployment if necessary; a failure is not cached. The texts
 * come from the configuration, which bounds the size of the table. Errors:
 * DEPLOYMENT_NOT_FOUND, when its account does not exist or is closed; LIMIT,
 * when it would be one more than the account may have; and those of
 * agent_db_pool_query().
 */
apr_status_t agent_served_deployment_declare(
    const char **id, agent_served_deployments_t *table, agent_db_pool_t *db,
    const char *deployment, agent_error_t **err, apr_pool_t *pool);

/* Checks on a connection whether the deployment can be served, before there are
 * children and a table. Errors: those of agent_served_deployment_declare() and
 * of agent_db_query(). */
apr_status_t agent_served_deployment_declare_on(agent_db_t *db,
                                                const char *deployment,
                                                agent_error_t **err,
                                                apr_pool_t *pool);

#endif

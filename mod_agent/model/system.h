/* SPDX-License-Identifier: Apache-2.0 */
/* The database itself. */
#ifndef AGENT_MODEL_SYSTEM_H
#define AGENT_MODEL_SYSTEM_H

#include "../db/pool.h"

/* Executes an empty statement, which also checks the schema's version. Errors:
 * those of agent_db_pool_query(). */
apr_status_t agent_system_ping(agent_db_pool_t *db, agent_error_t **err,
                               apr_pool_t *pool);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The database itself. */
#ifndef AGENT_MODEL_SYSTEM_H
#define AGENT_MODEL_SYSTEM_H

#include "../db/pool.h"

/* Executes an empty statement, which also checks the schema's version and the
 * database's region. Errors: those of agent_db_pool_query(). */
apr_status_t agent_system_ping(agent_db_pool_t *db, agent_error_t **err,
                               apr_pool_t *pool);

/* Opens a connection, *db, and executes the statement of agent_system_ping() on
 * it. The caller must close it with agent_db_close() whatever is returned.
 * Errors: UNAVAILABLE, and those of agent_db_query(). */
apr_status_t agent_system_open(agent_db_t **db, const char *conninfo,
                               const agent_db_settings_t *settings,
                               agent_error_t **err, apr_pool_t *pool);

/* Whether the database has an account, on a connection, before there are
 * children. account_id: a UUID. Errors: ACCOUNT_NOT_FOUND, and those of
 * agent_db_query(). */
apr_status_t agent_system_find_account(agent_db_t *db, const char *account_id,
                                       agent_error_t **err, apr_pool_t *pool);

#endif

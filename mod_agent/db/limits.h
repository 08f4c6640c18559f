/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores the limits of accounts that httpd.conf names, with agent.set_limits.
 * Each new connection does, of the check before the start, of httpd's children
 * and of the supervisor, which repeats it until they are stored: a database
 * that was restored, or did not answer before, gets them with the first
 * statement that could depend on them.
 */
#ifndef AGENT_DB_LIMITS_H
#define AGENT_DB_LIMITS_H

#include "../core/limit.h"
#include "../core/log.h"
#include "query.h"

#define AGENT_DB_LIMITS_PARAMS 3

extern const agent_statement_t agent_db_set_limits;

/* Sets the parameters of that statement, in pool. limits->text is not NULL. */
void agent_db_limits_fill(const char *params[AGENT_DB_LIMITS_PARAMS],
                          const agent_stored_limits_t *limits,
                          apr_pool_t *pool);

/* Logs what the statement has replaced: AGT0413. Returns whether the limits are
 * stored: false in a database that accepts no writes, such as a standby that
 * may be promoted. pool: temporary memory. */
bool agent_db_limits_report(const agent_db_result_t *result,
                            const agent_log_t *log, apr_pool_t *pool);

#endif

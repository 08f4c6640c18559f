/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores the limits of accounts that httpd.conf names, with agent.set_limits:
 * the first statement on each new connection, of the check at startup, of
 * httpd's children and of the supervisor. So a database that was restored, or
 * was unreachable at startup, has them before any statement that depends on
 * them. The supervisor repeats the statement until the limits are stored.
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

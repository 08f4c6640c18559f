/* SPDX-License-Identifier: Apache-2.0 */
/* The first statement on a connection; see session.h. */
#include "session.h"

#include <string.h>

#include <apr_strings.h>

/* reserved_connections: since PostgreSQL 16. */
#define CONNECTIONS_SQL                                                        \
    "pg_catalog.current_setting('max_connections')::pg_catalog.int4 "          \
    "operator(pg_catalog.-) "                                                  \
    "pg_catalog.current_setting('superuser_reserved_connections')"             \
    "::pg_catalog.int4 operator(pg_catalog.-) "                                \
    "coalesce(pg_catalog.current_setting('reserved_connections', true), '0')"  \
    "::pg_catalog.int4"

/* Replaces the role's own timeouts: with one of a second, a batch that takes
 * two would be sent for ever. A crash of the database is reported by a warning,
 * which a role may have switched off. */
const agent_statement_t agent_session_begin = {
    .params = 2,
    .sql = "select (select pg_catalog.string_agg(pg_catalog.concat(name, "
           "' = off'), ', ' order by name) from pg_catalog.pg_settings where "
           "setting operator(pg_catalog.=) 'off' and name "
           "operator(pg_catalog.=) any ('{fsync, full_page_writes, "
           "synchronous_commit}')), " CONNECTIONS_SQL
           ", agent.database_region(), " AGENT_DB_SESSION_SQL
           "pg_catalog.set_config('statement_timeout', $1, false), "
           "pg_catalog.set_config('lock_timeout', $2, false), "
           "pg_catalog.set_config('client_min_messages', 'warning', false), "
           "pg_catalog.set_config('idle_session_timeout', '0', false)"};

const char *agent_session_limit(apr_interval_time_t time, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%" APR_TIME_T_FMT, apr_time_as_msec(time));
}

agent_session_info_t agent_session_read(const agent_db_result_t *result)
{
    return (agent_session_info_t){
        .unsafe = agent_db_value(result, 0, 0),
        .connections = agent_db_integer(result, 0, 1, 0),
        .region = agent_db_value(result, 0, 2)};
}

bool agent_session_is_allowed(const agent_session_info_t *info,
                              const char *region)
{
    return region == NULL
        || (info->region != NULL && strcmp(info->region, region) == 0);
}

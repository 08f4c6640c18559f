/* SPDX-License-Identifier: Apache-2.0 */
/* The first statement on a connection of the supervisor: sets the limits of the
 * session, and reads what database this is. */
#ifndef AGENT_SUPERVISOR_SESSION_H
#define AGENT_SUPERVISOR_SESSION_H

#include "../../db/query.h"

/* The database of a new connection. */
typedef struct agent_session_info_t {
    /* Settings with which a crash loses commits, or NULL. */
    const char *unsafe;
    /* The connections that it accepts. */
    apr_int64_t connections;
    /* The region that it belongs to. */
    const char *region;
} agent_session_info_t;

/* The first statement of a session. Parameters: the time limits of a statement,
 * and of a lock that it waits for (0: none), in ms. */
extern const agent_statement_t agent_session_begin;

/* Returns a time as a parameter, in pool. */
const char *agent_session_limit(apr_interval_time_t time, apr_pool_t *pool);

/* Reads its result; the texts are borrowed from it. */
agent_session_info_t agent_session_read(const agent_db_result_t *result);

/* Whether a host of that region, NULL being any, may use the database. */
bool agent_session_is_allowed(const agent_session_info_t *info,
                              const char *region);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the limits of accounts on each new connection, before the first claim
 * on it; see ../../db/limits.h. */
#ifndef AGENT_SUPERVISOR_SET_LIMITS_H
#define AGENT_SUPERVISOR_SET_LIMITS_H

#include "database.h"

typedef struct agent_set_limits_t {
    const agent_database_t *database;
    /* Number of the connection on which they were stored last; 0: none. */
    apr_uint64_t connection;
    /* After a failure. */
    apr_time_t retry_at;
} agent_set_limits_t;

/* part: an agent_set_limits_t. */
extern const agent_operation_t agent_set_limits_operation;

#endif

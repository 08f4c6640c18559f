/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that the connections of a process have in common. */
#ifndef AGENT_DB_SETTINGS_H
#define AGENT_DB_SETTINGS_H

#include <apr_time.h>

#include "../core/generation.h"
#include "../core/log.h"

/*
 * Time limits of a connection attempt and a statement, and the region that the
 * database must belong to; NULL: any. limits: what a new connection stores with
 * agent.set_limits, and the generation that has it; NULL: nothing. log has what
 * it replaces there.
 */
typedef struct agent_db_settings_t {
    apr_interval_time_t connect_timeout;
    apr_interval_time_t query_timeout;
    const char *region;
    const char *limits;
    agent_generation_t generation;
    agent_log_t log;
} agent_db_settings_t;

/* Stores limits of accounts: $1 is JSON, $2 and $3 the generation and its age
 * in ms. */
#define AGENT_DB_LIMITS_SQL "select replaced from agent.set_limits($1, $2, $3)"

#endif

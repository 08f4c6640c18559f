/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that the connections of a process have in common. */
#ifndef AGENT_DB_SETTINGS_H
#define AGENT_DB_SETTINGS_H

#include <apr_time.h>

#include "../core/limit.h"
#include "../core/log.h"

/*
 * Time limits of a connection attempt and a statement, and the region that the
 * database must belong to; NULL: any. limits: what a new connection stores (see
 * limits.h); log has what it replaces there.
 */
typedef struct agent_db_settings_t {
    apr_interval_time_t connect_timeout;
    apr_interval_time_t query_timeout;
    const char *region;
    agent_stored_limits_t limits;
    agent_log_t log;
} agent_db_settings_t;

#endif

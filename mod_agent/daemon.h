/* SPDX-License-Identifier: Apache-2.0 */
/* httpd's side of the supervisor: forks it, watches it, ends it. */
#ifndef AGENT_DAEMON_H
#define AGENT_DAEMON_H

#include "config/config.h"
#include "core/log.h"

/* Part of the configuration's check. False: runners cannot run as
 * AgentRunnerUser; the error log says why. */
bool agent_daemon_check_user(const agent_server_config_t *config,
                             server_rec *server);

/*
 * Starts the supervisor in post_config and registers what keeps it alive: it
 * is started again when it dies, drains when the configuration's pool ends (a
 * restart), and ends with the parent. When the system refuses a process,
 * agent_daemon_monitor() tries again, and httpd serves until then.
 */
apr_status_t agent_daemon_start(agent_server_config_t *config,
                                const char *conninfo, server_rec *server,
                                apr_pool_t *pconf);

/*
 * A monitor hook, which the MPM calls in the parent about every 10 seconds:
 * starts the supervisor where that failed before. Returns OK.
 */
int agent_daemon_monitor(apr_pool_t *pool, server_rec *server);

/* In a child: closes what only the parent and the supervisor may hold, and
 * returns the write end of the wake socket, or -1. */
int agent_daemon_child_init(server_rec *server);

/* Writes to the error log of the main server. */
agent_log_t agent_daemon_log(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* httpd's side of the supervisor: starts it, restarts it, ends it. */
#ifndef AGENT_DAEMON_H
#define AGENT_DAEMON_H

#include "config/config.h"
#include "core/log.h"

/* Part of the configuration check. False: AgentRunnerUser is invalid, which is
 * logged. */
bool agent_daemon_check_user(const agent_server_config_t *config,
                             server_rec *server);

/*
 * Starts the supervisor in post_config. It is started again when it dies,
 * drains when the configuration's pool ends (a restart), and ends with the
 * parent. When the system refuses a process, agent_daemon_monitor() tries again
 * while httpd serves. Errors: those of the system calls, APR_ENOENT for an
 * unknown AgentRunnerUser.
 */
apr_status_t agent_daemon_start(agent_server_config_t *config,
                                const char *conninfo, server_rec *server,
                                apr_pool_t *pconf);

/*
 * The monitor hook, called in the parent about every 10 seconds: starts the
 * supervisor if that failed before. Returns OK.
 */
int agent_daemon_monitor(apr_pool_t *pool, server_rec *server);

/* In a child: closes the descriptors of parent and supervisor, and returns the
 * write end of the wake socket, or -1. */
int agent_daemon_child_init(server_rec *server);

/* A log that writes to the error log of the main server. */
agent_log_t agent_daemon_log(void);

#endif

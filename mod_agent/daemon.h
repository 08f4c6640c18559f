/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, restarts and stops the supervisor; httpd's side of it. */
#ifndef AGENT_DAEMON_H
#define AGENT_DAEMON_H

#include <http_core.h>

#include "config/config.h"
#include "core/log.h"

/*
 * Starts the supervisor in post_config. It is started again when it dies,
 * drains when the configuration's pool ends (a restart) or a graceful stop
 * begins, and ends with the parent. When the system refuses a process,
 * agent_daemon_monitor() tries again while httpd serves. Errors: those of the
 * system calls, APR_ENOENT for an unknown AgentRunnerUser.
 */
apr_status_t agent_daemon_start(agent_server_config_t *config,
                                const char *conninfo, server_rec *server,
                                apr_pool_t *pconf);

/* The monitor hook, called in the parent about every 10 seconds: starts the
 * supervisor if an earlier start failed. Returns OK. */
int agent_daemon_monitor(apr_pool_t *pool, server_rec *server);

/*
 * Makes the supervisor drain when a graceful stop begins. At that time the
 * parent runs no hook, but it writes to the error log: so this is the error_log
 * hook, which is called for each line in every process. The parent later waits
 * for the supervisor, at most AgentDrainTimeout + 20 s, and at most
 * GracefulShutdownTimeout if that is set.
 */
void agent_daemon_check_stop(const ap_errorlog_info *info, const char *text);

/* In a child: closes the descriptors of parent and supervisor, and overwrites
 * the keys of models and webhooks. Returns the write end of the wake socket, or
 * -1. */
int agent_daemon_child_init(server_rec *server);

/* Returns a log that writes to the error log of the main server. */
agent_log_t agent_daemon_log(void);

#endif

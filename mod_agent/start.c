/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the database for its region before httpd starts; see start.h. A process
 * of its own connects, as the user of httpd's children: PostgreSQL may not know
 * root, and the parent, whose memory all children inherit, uses no libpq.
 */
#include "start.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpm_common.h>

#include "child.h"
#include "model/system.h"
#include "private.h"

/* The exit status of that process. */
#define OTHER_REGION 3

/* For what has no limit of its own, such as the DNS. */
#define REST_SEC 5

static int check(const agent_server_config_t *config, const char *conninfo,
                 server_rec *server, apr_pool_t *pool)
{
    const agent_db_settings_t settings = agent_child_db_settings(config);
    agent_error_t *err;

    signal(SIGALRM, SIG_DFL);
    alarm((unsigned)apr_time_sec(settings.connect_timeout
                                 + settings.query_timeout)
          + REST_SEC);
    ap_run_drop_privileges(pool, server);
    if (agent_system_check(conninfo, &settings, &err, pool) == APR_SUCCESS
        || err->id != AGENT_E_REGION_MISMATCH) {
        return 0;
    }
    ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server,
                 AGENT_LOGNO(0412) "httpd does not start: %s", err->cause);
    return OTHER_REGION;
}

bool agent_start_check_region(const agent_server_config_t *config,
                              const char *conninfo, server_rec *server,
                              apr_pool_t *pool)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        _exit(check(config, conninfo, server, pool));
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return !WIFEXITED(status) || WEXITSTATUS(status) != OTHER_REGION;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the database for its region, and for the deployments and accounts that
 * httpd.conf names, before httpd starts; see startup.h. A process of its own
 * connects, as the user of httpd's children: PostgreSQL may not know root, and
 * the parent, whose memory all children inherit, uses no libpq.
 */
#include "startup.h"

#include <errno.h>
#include <signal.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>
#include <mpm_common.h>

#include "child.h"
#include "config/conftree.h"
#include "config/limit.h"
#include "config/unused_directive.h"
#include "core/deployment.h"
#include "core/identity.h"
#include "core/uuid.h"
#include "model/served_deployment.h"
#include "model/system.h"
#include "private.h"

/* The exit status of that process. */
#define OTHER_REGION 3

/* For what has no limit of its own, such as the DNS. */
#define REST_SEC 5

/* Deployments that a limit of httpd.conf concerns; others are created when they
 * are used. */
static void check_deployments(agent_db_t *db,
                              const agent_server_config_t *config,
                              server_rec *server, apr_pool_t *pool)
{
    const apr_array_header_t *list = agent_unused_directive_list_deployments(
        config, pool);
    agent_error_t *err;

    for (int i = 0; i < list->nelts; i++) {
        const char *deployment = APR_ARRAY_IDX(list, i, const char *);

        if (agent_account_limit_get(config, AGENT_LIMIT_DEPLOYMENTS,
                                    agent_deployment_account(deployment))
                >= 0
            && agent_served_deployment_declare_on(db, deployment, &err, pool)
                != APR_SUCCESS
            && err->id == AGENT_E_LIMIT) {
            ap_log_error(APLOG_MARK, APLOG_ERR, 0, server,
                         AGENT_LOGNO(0455) "AgentDeployment %s is not served: "
                                           "%s",
                         deployment, err->detail);
        }
    }
}

typedef struct required_t {
    agent_db_t *db;
    server_rec *server;
    apr_pool_t *pool;
} required_t;

static void check_account(const required_t *required, const char *word,
                          const ap_directive_t *directive)
{
    char id[AGENT_UUID_SIZE];
    agent_error_t *err;

    if (agent_uuid_parse(id, word)
        && agent_system_find_account(required->db, id, &err, required->pool)
            != APR_SUCCESS
        && err->id == AGENT_E_ACCOUNT_NOT_FOUND) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, required->server,
                     AGENT_LOGNO(0458) "Require " AGENT_REQUIRE_ACCOUNT
                                       ": expected accounts of this region, "
                                       "got '%s' at %s:%d: no key is one of it",
                     word, directive->filename, directive->line_num);
    }
}

/* `Require [not] agent-account ID...`; ids of another form are errors of the
 * configuration. */
static void check_require(const ap_directive_t *directive, void *baton)
{
    const required_t *required = baton;
    const char *line = directive->args;
    const char *word = ap_getword_conf(required->pool, &line);

    if (strcasecmp(word, "not") == 0) {
        word = ap_getword_conf(required->pool, &line);
    }
    if (strcasecmp(word, AGENT_REQUIRE_ACCOUNT) != 0) {
        return;
    }
    while (*line != '\0') {
        check_account(required, ap_getword_conf(required->pool, &line),
                      directive);
    }
}

static int check(const agent_server_config_t *config, const char *conninfo,
                 server_rec *server, apr_pool_t *pool)
{
    agent_db_settings_t settings = agent_child_db_settings(config, pool);
    agent_error_t *err;
    agent_db_t *db;
    apr_status_t rv;

    signal(SIGALRM, SIG_DFL);
    alarm((unsigned)apr_time_sec(settings.connect_timeout
                                 + settings.query_timeout)
          + REST_SEC);
    ap_run_drop_privileges(pool, server);
    rv = agent_system_open(&db, conninfo, &settings, &err, pool);
    if (rv == APR_SUCCESS) {
        required_t required = {db, server, pool};

        check_deployments(db, config, server, pool);
        agent_conftree_visit("Require", check_require, &required);
    }
    agent_db_close(db);
    if (rv == APR_SUCCESS || err->id != AGENT_E_REGION_MISMATCH) {
        return 0;
    }
    ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server,
                 AGENT_LOGNO(0412) "httpd does not start: %s", err->cause);
    return OTHER_REGION;
}

bool agent_startup_check(const agent_server_config_t *config,
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries the database for its region, and for the deployments and accounts
 * that httpd.conf names, before httpd starts; see startup.h. A separate process
 * connects, as the user of httpd's children: PostgreSQL may not know root, and
 * libpq must not be used in the parent, whose memory all children inherit.
 */
#include "startup.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include <apr_strings.h>
#include <mpm_common.h>

#include "child.h"
#include "config/account_limit.h"
#include "config/conftree.h"
#include "config/unused_directive.h"
#include "core/deployment.h"
#include "core/identity.h"
#include "core/uuid.h"
#include "model/served_deployment.h"
#include "model/system.h"
#include "private.h"

/* The exit status of that process. */
#define OTHER_REGION 3

/* Additional time for steps without a limit of their own, such as DNS. */
#define REST_SEC 5

/* Checks the deployments that a limit of httpd.conf concerns; others are
 * created when they are first used. */
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

/* For the search of accounts that directives name. */
typedef struct lookup_t {
    agent_db_t *db;
    server_rec *server;
    apr_pool_t *pool;
} lookup_t;

/* Whether it is the id of an account that the database does not have. */
static bool is_missing(const lookup_t *lookup, const char *word)
{
    char id[AGENT_UUID_SIZE];
    agent_error_t *err;

    return agent_uuid_parse(id, word)
        && agent_system_find_account(lookup->db, id, &err, lookup->pool)
        != APR_SUCCESS
        && err->id == AGENT_E_ACCOUNT_NOT_FOUND;
}

/* A line may have thousands. */
#define MOST_NAMED 3

static void warn_of_accounts(const lookup_t *lookup,
                             const ap_directive_t *directive, const char *named,
                             int count)
{
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, lookup->server,
                 AGENT_LOGNO(0458) "Require " AGENT_REQUIRE_ACCOUNT
                                   ": expected accounts of this region, got %s"
                                   "%s at %s:%d: no key belongs to %s",
                 named,
                 count > MOST_NAMED ? apr_psprintf(lookup->pool, " and %d more",
                                                   count - MOST_NAMED)
                                    : "",
                 directive->filename, directive->line_num,
                 count > 1 ? "them" : "it");
}

/* ids: those that are not UUIDs are errors that the configuration check
 * reports. */
static void check_accounts(const lookup_t *lookup,
                           const ap_directive_t *directive, const char *ids)
{
    const char *named = NULL;
    int count = 0;

    while (*ids != '\0') {
        const char *word = ap_getword_conf(lookup->pool, &ids);

        /* Bounded: MOST_NAMED ids. */
        if (is_missing(lookup, word) && ++count <= MOST_NAMED) {
            named = apr_pstrcat(lookup->pool, named != NULL ? named : "",
                                named != NULL ? ", '" : "'", word, "'", NULL);
        }
    }
    if (count > 0) {
        warn_of_accounts(lookup, directive, named, count);
    }
}

/* `Require [not] agent-account ID...` */
static void check_require(const ap_directive_t *directive, void *baton)
{
    const lookup_t *lookup = baton;
    const char *line = directive->args;
    const char *word = ap_getword_conf(lookup->pool, &line);

    if (strcasecmp(word, "not") == 0) {
        word = ap_getword_conf(lookup->pool, &line);
    }
    if (strcasecmp(word, AGENT_REQUIRE_ACCOUNT) == 0) {
        check_accounts(lookup, directive, line);
    }
}

/* `<AuthzProviderAlias agent-account NAME "ID...">` */
static void check_alias(const ap_directive_t *directive, void *baton)
{
    const lookup_t *lookup = baton;
    agent_conftree_alias_t alias = agent_conftree_read_alias(directive,
                                                             lookup->pool);

    if (strcasecmp(alias.provider, AGENT_REQUIRE_ACCOUNT) == 0) {
        check_accounts(lookup, directive, alias.args);
    }
}

/* `AgentLimit NAME VALUE [account=ID]` */
static void check_limit(const ap_directive_t *directive, void *baton)
{
    static const char prefix[] = "account=";
    const lookup_t *lookup = baton;
    const char *line = directive->args;

    while (*line != '\0') {
        const char *word = ap_getword_conf(lookup->pool, &line);

        if (strncmp(word, prefix, strlen(prefix)) == 0
            && is_missing(lookup, word + strlen(prefix))) {
            ap_log_error(APLOG_MARK, APLOG_WARNING, 0, lookup->server,
                         AGENT_LOGNO(0459) "AgentLimit: expected an account "
                                           "of this region, got '%s' at "
                                           "%s:%d: it limits nothing",
                         word, directive->filename, directive->line_num);
        }
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
        lookup_t lookup = {db, server, pool};

        check_deployments(db, config, server, pool);
        agent_conftree_visit("Require", check_require, &lookup);
        agent_conftree_visit(AGENT_CONFTREE_ALIAS, check_alias, &lookup);
        agent_conftree_visit("AgentLimit", check_limit, &lookup);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of runners that httpd.conf declares; see pools.h. */
#include "pools.h"

#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include <http_log.h>
#include <unixd.h>

#include "application_pools.h"
#include "config/account_limit.h"
#include "config/graph.h"
#include "config/runner_settings.h"
#include "core/deployment.h"
#include "db/conninfo.h"
#include "private.h"
#include "supervisor/process/cgroup.h"

/* ---- checks ---- */

static bool check_user(const char *name, server_rec *server)
{
    const struct passwd *user = geteuid() == 0 ? getpwnam(name) : NULL;

    if (geteuid() != 0 || (user != NULL && user->pw_uid != 0)) {
        return true;
    }
    ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server,
                 AGENT_LOGNO(0403) "AgentRunnerUser: expected a user of this "
                                   "system other than root, got '%s'",
                 name);
    return false;
}

static bool check_count(int runners, server_rec *server)
{
    if (runners <= AGENT_POOLS_MAX_RUNNERS) {
        return true;
    }
    ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server,
                 AGENT_LOGNO(0443) "AgentRunners: expected at most %d runners "
                                   "of all pools together, got %d",
                 AGENT_POOLS_MAX_RUNNERS, runners);
    return false;
}

static agent_cgroup_limits_t get_limits(const agent_runner_settings_t *settings)
{
    return (agent_cgroup_limits_t){.memory = settings->pool_memory,
                                   .processes = settings->pool_processes,
                                   .cpu_percent = settings->pool_cpu};
}

/* Tries to set a pool's limits; at the start of the server, with the rights
 * that the spawner will have. */
static bool check_cgroup(const char *directory,
                         const agent_runner_settings_t *settings,
                         server_rec *server)
{
    agent_cgroup_limits_t limits = get_limits(settings);
    agent_cgroup_problem_t problem;
    apr_status_t rv;

    if (directory == NULL) {
        return true;
    }
    rv = agent_cgroup_check(&problem, directory, &limits);
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_EMERG,
                     rv == APR_ENOTIMPL ? APR_SUCCESS : rv, server,
                     AGENT_LOGNO(0446) "AgentRunnerCgroup: expected %s, got "
                                       "'%s' (%s)",
                     problem.expected, directory, problem.failed);
    }
    return rv == APR_SUCCESS;
}

/* Runners should not have the database user's name: PostgreSQL may authenticate
 * by the system user (peer). */
static void warn_of_database_user(const char *name, const char *conninfo,
                                  server_rec *server)
{
    if (strcmp(name, "postgres") == 0
        || agent_conninfo_has_user(conninfo, name)) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     AGENT_LOGNO(0440) "runners run as %s, whom PostgreSQL may "
                                       "let in without a password: set "
                                       "AgentRunnerUser to another user",
                     name);
    }
}

static void warn_of_user(const char *name, uid_t uid, const char *conninfo,
                         server_rec *server)
{
    if (uid == ap_unixd_config.user_id) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     AGENT_LOGNO(0404) "runners run as %s like httpd itself: "
                                       "set AgentRunnerUser to another user",
                     name);
    }
    warn_of_database_user(name, conninfo, server);
}

/* ---- the configuration of the supervisor ---- */

/* agent_pools_check() has checked that the user exists. */
static apr_status_t find_user(agent_pool_config_t *runners, const char *name)
{
    const struct passwd *user = getpwnam(name);

    runners->uid = (uid_t)-1;
    if (geteuid() != 0) {
        return APR_SUCCESS;
    }
    if (user == NULL) {
        return APR_ENOENT;
    }
    runners->uid = user->pw_uid;
    runners->gid = user->pw_gid;
    return APR_SUCCESS;
}

static void fill_settings(agent_pool_config_t *runners,
                          const agent_runner_settings_t *settings)
{
    runners->runners = settings->runners;
    runners->slots = settings->slots;
    runners->memory = settings->memory;
    runners->max_runs = settings->max_runs;
    runners->recycle_memory = settings->recycle_memory;
    runners->files = settings->files;
    runners->processes = settings->processes;
    runners->limits = get_limits(settings);
    runners->busy_timeout = settings->busy_timeout;
    runners->idle_time = settings->idle_time;
    runners->run_timeout = settings->run_timeout;
    runners->store_ttl = settings->store_ttl;
}

/* *problem: an error message, in pool, with APR_EGENERAL. */
static apr_status_t fill_pool(agent_pool_config_t *runners,
                              const char **problem,
                              const agent_server_config_t *config,
                              const agent_graph_pool_t *key, apr_pool_t *pool)
{
    agent_runner_settings_t settings = agent_runner_settings_get(config, key);
    apr_status_t rv = find_user(runners, settings.user);

    *problem = NULL;
    runners->deployment = key->deployment;
    runners->has_limit = agent_account_limit_get(
                             config, AGENT_LIMIT_RUNNING_RUNS,
                             agent_deployment_account(key->deployment))
        >= 0;
    runners->name = key->deployment;
    runners->graph_ids = agent_graph_list_of_pool(config, key, pool);
    while (runners->graph_ids[runners->graph_count] != NULL) {
        runners->graph_count++;
    }
    runners->program = agent_config_runner(config);
    fill_settings(runners, &settings);
    if (rv == APR_SUCCESS && key->application != NULL) {
        *problem = agent_application_pools_fill(runners, config, key, pool);
    }
    return *problem != NULL ? APR_EGENERAL : rv;
}

/* Whether no earlier pool has the same user. */
static bool is_first_of_user(const agent_pool_config_t *pools, int number)
{
    for (int i = 0; i < number; i++) {
        if (pools[i].uid == pools[number].uid) {
            return false;
        }
    }
    return pools[number].uid != (uid_t)-1;
}

static const agent_graph_pool_t *get_key(const apr_array_header_t *keys, int i)
{
    return &APR_ARRAY_IDX(keys, i, const agent_graph_pool_t);
}

apr_status_t agent_pools_fill(agent_supervisor_config_t *supervisor,
                              const agent_server_config_t *config,
                              server_rec *server, apr_pool_t *pool)
{
    const apr_array_header_t *keys = agent_graph_list_pools(config, pool);
    agent_pool_config_t *pools = apr_pcalloc(
        pool, (apr_size_t)keys->nelts * sizeof(*pools));
    const char *problem;

    supervisor->cgroup = keys->nelts > 0 ? agent_config_cgroup(config) : NULL;
    supervisor->pools = pools;
    supervisor->pool_count = keys->nelts;
    for (int i = 0; i < keys->nelts; i++) {
        apr_status_t rv = fill_pool(&pools[i], &problem, config,
                                    get_key(keys, i), pool);

        if (rv != APR_SUCCESS) {
            return rv;
        }
        if (is_first_of_user(pools, i)) {
            warn_of_user(
                agent_runner_settings_get(config, get_key(keys, i)).user,
                pools[i].uid, supervisor->conninfo, server);
        }
    }
    return APR_SUCCESS;
}

/* ---- the check of the configuration ---- */

/* Checks the runner of an application, with the rights that it will have. */
static bool check_application(const agent_server_config_t *config,
                              const agent_graph_pool_t *key, server_rec *server,
                              apr_pool_t *pool)
{
    agent_pool_config_t runners = {.uid = (uid_t)-1};
    const char *problem;

    if (key->application == NULL) {
        return true;
    }
    if (fill_pool(&runners, &problem, config, key, pool) == APR_SUCCESS) {
        problem = agent_application_pools_check(&runners, config, key, pool);
    }
    if (problem != NULL) {
        ap_log_error(APLOG_MARK, APLOG_EMERG, 0, server, AGENT_LOGNO(0447) "%s",
                     problem);
    }
    return problem == NULL;
}

bool agent_pools_check(const agent_server_config_t *config, server_rec *server,
                       apr_pool_t *pool)
{
    const apr_array_header_t *keys = agent_graph_list_pools(config, pool);
    int runners = 0;

    for (int i = 0; i < keys->nelts; i++) {
        const agent_graph_pool_t *key = get_key(keys, i);
        agent_runner_settings_t settings = agent_runner_settings_get(config,
                                                                     key);

        if (!check_user(settings.user, server)
            || !check_cgroup(agent_config_cgroup(config), &settings, server)
            || !check_application(config, key, server, pool)) {
            return false;
        }
        runners += settings.runners;
    }
    return check_count(runners, server);
}

void agent_pools_print_graphs(agent_supervisor_config_t *supervisor,
                              const agent_server_config_t *config,
                              apr_pool_t *pool)
{
    const apr_array_header_t *keys = agent_graph_list_pools(config, pool);

    for (int i = 0; i < supervisor->pool_count; i++) {
        supervisor->pools[i].graphs = agent_graph_print_json(
            config, get_key(keys, i), pool);
    }
}

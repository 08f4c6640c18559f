/* SPDX-License-Identifier: Apache-2.0 */
/* AgentRegion, AgentRegionURL and AgentWrongRegion; see region.h. */
#include "region.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../core/api_key.h"
#include "../private.h"
#include "conftree.h"
#include "value.h"

#define DEFAULT_REGION "local"

const char *agent_region_own(const agent_server_config_t *config)
{
    return config->region != NULL ? config->region : DEFAULT_REGION;
}

const agent_region_t *agent_region_find(const agent_server_config_t *config,
                                        const char *name)
{
    for (int i = 0; i < config->regions->nelts; i++) {
        const agent_region_t *region = &APR_ARRAY_IDX(config->regions, i,
                                                      const agent_region_t);

        if (strcmp(region->name, name) == 0) {
            return region;
        }
    }
    return NULL;
}

/* Names and URLs of regions need no escapes. */
static const char *print_url(const char *name, const char *url,
                             apr_pool_t *pool)
{
    return url != NULL
        ? apr_pstrcat(pool, ",\"", name, "\":\"", url, "\"", NULL)
        : "";
}

const char *agent_region_print_urls(const agent_region_t *region, bool with_web,
                                    apr_pool_t *pool)
{
    return region != NULL
        ? apr_pstrcat(pool,
                      with_web ? print_url("web_url", region->web, pool) : "",
                      print_url("api_url", region->api, pool),
                      print_url("beacon_url", region->beacon, pool), NULL)
        : "";
}

int agent_region_wrong_status(const agent_server_config_t *config)
{
    return config->wrong_region != -1 ? config->wrong_region : HTTP_FORBIDDEN;
}

bool agent_region_is_guarded(const agent_server_config_t *config)
{
    return config->region != NULL || config->regions->nelts > 0
        || config->has_platform;
}

/* ---- directives ---- */

static const char *check_name(cmd_parms *cmd, const char *name)
{
    return agent_api_key_is_region(name)
        ? NULL
        : apr_psprintf(cmd->pool,
                       "%s: expected the name of a region, at most %d lower "
                       "case letters, digits and -, a letter first, got '%s'",
                       cmd->cmd->name, AGENT_API_KEY_REGION_MAX, name);
}

const char *agent_region_set(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config == NULL) {
        return problem;
    }
    config->region = arg;
    return check_name(cmd, arg);
}

/* URLs are sent in headers and in HTML, so they must have no character with a
 * meaning there, and neither a query nor a user. */
static bool is_plain_url(const char *url)
{
    const char *host = strstr(url, "://");

    if (host == NULL) {
        return false;
    }
    host += strlen("://");
    return host[strspn(host,
                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                       "0123456789-._~:/[]%")]
        == '\0'
        && strspn(host, "/:") == 0 && *host != '\0'
        && host[strlen(host) - 1] != '/';
}

/* Sets *out to the URL. */
static const char *read_url(const char **out, cmd_parms *cmd, const char *url)
{
    const char *problem = agent_value_url(cmd, url);

    *out = url;
    return problem != NULL || is_plain_url(url)
        ? problem
        : apr_psprintf(cmd->pool,
                       "%s: expected URLs like https://eu.api.example.com, "
                       "without a query and without / at the end, got '%s'",
                       cmd->cmd->name, url);
}

const char *agent_region_set_urls(cmd_parms *cmd, void *dir, int argc,
                                  char *const argv[])
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);
    agent_region_t region = {.beacon = NULL};

    if (config == NULL) {
        return problem;
    }
    if (argc < 3 || argc > 4) {
        return apr_psprintf(cmd->pool,
                            "AgentRegionURL: expected the name of a region, "
                            "the URLs of its web host and of its API host, and "
                            "optionally that of its beacon host, got %d values",
                            argc);
    }
    region.name = argv[0];
    problem = check_name(cmd, region.name);
    if (problem == NULL && agent_region_find(config, region.name) != NULL) {
        problem = apr_psprintf(cmd->pool,
                               "AgentRegionURL: expected each region once, got "
                               "'%s' twice",
                               region.name);
    }
    if (problem == NULL) {
        problem = read_url(&region.web, cmd, argv[1]);
    }
    if (problem == NULL) {
        problem = read_url(&region.api, cmd, argv[2]);
    }
    if (problem == NULL && argc == 4) {
        problem = read_url(&region.beacon, cmd, argv[3]);
    }
    APR_ARRAY_PUSH(config->regions, agent_region_t) = region;
    return problem;
}

const char *agent_region_set_wrong(cmd_parms *cmd, void *dir, const char *arg)
{
    static const struct {
        const char *word;
        int status;
    } words[] = {{"403", HTTP_FORBIDDEN},
                 {"421", HTTP_MISDIRECTED_REQUEST},
                 {"307", HTTP_TEMPORARY_REDIRECT}};
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config == NULL) {
        return problem;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(arg, words[i].word) == 0) {
            config->wrong_region = words[i].status;
            return NULL;
        }
    }
    return apr_psprintf(
        cmd->pool, "AgentWrongRegion: expected 403, 421 or 307, got '%s'", arg);
}

/* ---- warnings ---- */

static void warn_of_own(const agent_server_config_t *config, server_rec *server)
{
    const char *own = agent_region_own(config);

    if (config->regions->nelts > 0 && agent_region_find(config, own) == NULL) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     AGENT_LOGNO(0453) "AgentRegionURL: expected the URLs of "
                                       "this server's own region too, got none "
                                       "of '%s' (AgentRegion)",
                     own);
    }
}

typedef struct log_check_t {
    server_rec *server;
    apr_pool_t *pool;
} log_check_t;

/* The condition follows file and format, and is compared without regard to
 * case, as mod_log_config does. An expression that names the variable counts as
 * one that skips; it is not evaluated. */
static bool skips_wrong_regions(const char *args, apr_pool_t *pool)
{
    const char *condition;

    ap_getword_conf(pool, &args);
    ap_getword_conf(pool, &args);
    condition = ap_getword_conf(pool, &args);
    return strcasecmp(condition, "env=!" AGENT_WRONG_REGION_VARIABLE) == 0
        || (strncasecmp(condition, "expr=", strlen("expr=")) == 0
            && ap_strcasestr(condition, AGENT_WRONG_REGION_VARIABLE) != NULL);
}

static void warn_of_log(const ap_directive_t *directive, void *baton)
{
    const log_check_t *check = baton;

    if (!skips_wrong_regions(directive->args, check->pool)) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, check->server,
                     AGENT_LOGNO(0457) "%s: expected a CustomLog with "
                                       "env=!" AGENT_WRONG_REGION_VARIABLE
                                       ", got none at %s:%d: the log has paths "
                                       "and addresses of customers of other "
                                       "regions",
                     directive->directive, directive->filename,
                     directive->line_num);
    }
}

void agent_region_warn(const agent_server_config_t *config, server_rec *server,
                       apr_pool_t *ptemp)
{
    log_check_t check = {.server = server, .pool = ptemp};
    static const char *const logs[] = {"CustomLog", "GlobalLog", "TransferLog",
                                       "ForensicLog"};

    warn_of_own(config, server);
    if (!agent_region_is_guarded(config)) {
        return;
    }
    for (size_t i = 0; i < sizeof(logs) / sizeof(*logs); i++) {
        agent_conftree_visit(logs[i], warn_of_log, &check);
    }
}

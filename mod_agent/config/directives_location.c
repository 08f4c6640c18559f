/* SPDX-License-Identifier: Apache-2.0 */
/* Directives of locations: whose deployment they serve, how long threads and
 * items are kept, which origins may use the API, and the headers that runs get.
 */
#include "directives.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../core/address.h"
#include "../core/deployment.h"
#include "../core/header.h"
#include "../core/origin.h"
#include "../private.h"
#include "unused_directive.h"
#include "location.h"
#include "value.h"

/* Up to ten years, as the API. */
static const agent_duration_range_t ttl_range = {1, 5256000, "min", false,
                                                 true};

const char *agent_directive_thread_ttl(cmd_parms *cmd, void *dir,
                                       const char *arg)
{
    agent_dir_config_t *config = dir;

    return agent_value_duration(&config->thread_ttl, cmd, arg, &ttl_range);
}

const char *agent_directive_store_ttl(cmd_parms *cmd, void *dir,
                                      const char *arg)
{
    agent_dir_config_t *config = dir;

    return agent_value_duration(&config->runner.store_ttl, cmd, arg,
                                &ttl_range);
}

/* Makes the list, and sets *is_none. `None` must be the only value: it
 * contradicts all others. */
static const char *begin_list(apr_array_header_t **list, bool *is_none,
                              const cmd_parms *cmd, const char *arg, int size)
{
    *is_none = strcasecmp(arg, "none") == 0;
    if (*list == NULL) {
        *list = apr_array_make(cmd->pool, 4, size);
        return NULL;
    }
    return *is_none || apr_is_empty_array(*list)
        ? apr_psprintf(cmd->pool,
                       "%s: expected None alone, got '%s' beside another value",
                       cmd->cmd->name, arg)
        : NULL;
}

/* So must `*`. */
static bool is_mixture(const apr_array_header_t *origins, const char *arg)
{
    return !apr_is_empty_array(origins)
        && (strcmp(arg, "*") == 0
            || APR_ARRAY_IDX(origins, 0, agent_origin_pattern_t).is_any);
}

const char *agent_directive_origin(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;
    bool is_none;
    const char *problem = begin_list(&config->origins, &is_none, cmd, arg,
                                     sizeof(agent_origin_pattern_t));

    if (problem != NULL || is_none) {
        return problem;
    }
    if (is_mixture(config->origins, arg)) {
        return apr_psprintf(cmd->pool,
                            "AgentAllowOrigin: expected * alone, got '%s' "
                            "beside another value",
                            arg);
    }
    if (!agent_origin_read_pattern(apr_array_push(config->origins), arg)) {
        return apr_psprintf(cmd->pool,
                            "AgentAllowOrigin: expected origins like "
                            "https://app.example.com, http://localhost:* or "
                            "https://*.example.com, or * or None, got '%s'",
                            arg);
    }
    return NULL;
}

const char *agent_directive_origin_match(cmd_parms *cmd, void *dir,
                                         const char *arg)
{
    agent_dir_config_t *config = dir;
    ap_regex_t *match;

    config->origin_match = apr_array_make(cmd->pool, 1, sizeof(ap_regex_t *));
    if (strcasecmp(arg, "none") == 0) {
        return NULL;
    }
    match = ap_pregcomp(cmd->pool,
                        apr_pstrcat(cmd->pool, "\\A(?:", arg, ")\\z", NULL),
                        AP_REG_EXTENDED);
    /* The argument is compiled alone, too: with unbalanced parentheses it could
     * close the group, and match a part of an origin. */
    if (match == NULL || ap_pregcomp(cmd->pool, arg, AP_REG_EXTENDED) == NULL) {
        return apr_psprintf(cmd->pool,
                            "AgentAllowOriginMatch: expected a regular "
                            "expression or None, got '%s'",
                            arg);
    }
    APR_ARRAY_PUSH(config->origin_match, ap_regex_t *) = match;
    return NULL;
}

static void warn_of_credential(const char *arg, cmd_parms *cmd)
{
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, cmd->server,
                 AGENT_LOGNO(0449) "AgentConfigurableHeaders: expected no "
                                   "header with credentials, got '%s' at "
                                   "%s:%d: it is stored with each run, and the "
                                   "API shows it",
                 arg, cmd->directive->filename, cmd->directive->line_num);
}

const char *agent_directive_headers(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;
    bool is_none;
    const char *problem = begin_list(&config->headers, &is_none, cmd, arg,
                                     sizeof(agent_header_pattern_t));

    if (problem != NULL || is_none) {
        return problem;
    }
    problem = agent_header_add_pattern(config->headers, arg, cmd->pool);
    if (problem != NULL) {
        return apr_pstrcat(cmd->pool, "AgentConfigurableHeaders: ", problem,
                           NULL);
    }
    if (agent_header_is_credential(
            &APR_ARRAY_IDX(config->headers, config->headers->nelts - 1,
                           const agent_header_pattern_t))) {
        warn_of_credential(arg, cmd);
    }
    return NULL;
}

const char *agent_directive_deployment(cmd_parms *cmd, void *dir,
                                       const char *name, const char *account)
{
    agent_dir_config_t *config = dir;
    const char *id;
    const char *problem;

    if (!agent_deployment_is_name(name)) {
        return apr_psprintf(cmd->pool,
                            "AgentDeployment: expected 1 to %d lower case "
                            "letters, digits, - and _, a letter or digit "
                            "first, got '%s'",
                            AGENT_DEPLOYMENT_NAME_MAX, name);
    }
    problem = agent_value_account(&id, cmd, account, "name");
    if (problem != NULL) {
        return problem;
    }
    config->deployment = agent_deployment_print(
        name, id != NULL ? id : AGENT_ACCOUNT_ID, cmd->pool);
    agent_unused_directive_record(cmd, config->deployment);
    return NULL;
}

const char *agent_directive_trust(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;
    agent_address_block_t block;
    bool is_none;
    const char *problem = begin_list(&config->trusted, &is_none, cmd, arg,
                                     sizeof(agent_address_block_t));

    if (problem != NULL || is_none) {
        return problem;
    }
    if (!agent_address_read_block(&block, arg)) {
        return apr_psprintf(cmd->pool,
                            "AgentTrustUserHeader: expected %s, or None, got "
                            "'%s'",
                            agent_address_expected(arg), arg);
    }
    /* A block without an IPv4 equivalent is compared as an IPv6 block. */
    agent_address_unmap_block(&block);
    APR_ARRAY_PUSH(config->trusted, agent_address_block_t) = block;
    return NULL;
}

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

/* `*` and None must stand alone: beside other origins one of them would have no
 * effect. */
static bool is_mixture(const apr_array_header_t *origins, const char *arg)
{
    bool is_none = strcasecmp(arg, "none") == 0;

    if (origins == NULL) {
        return false;
    }
    if (apr_is_empty_array(origins)) {
        return !is_none;
    }
    return is_none || strcmp(arg, "*") == 0
        || APR_ARRAY_IDX(origins, 0, agent_origin_pattern_t).is_any;
}

const char *agent_directive_origin(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;

    if (is_mixture(config->origins, arg)) {
        return apr_psprintf(cmd->pool,
                            "AgentAllowOrigin: expected * or None alone, got "
                            "'%s' beside another origin",
                            arg);
    }
    if (config->origins == NULL) {
        config->origins = apr_array_make(cmd->pool, 2,
                                         sizeof(agent_origin_pattern_t));
    }
    if (strcasecmp(arg, "none") == 0) {
        return NULL;
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
    /* Also alone: parentheses that close the group would match a part. */
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
    bool is_none = strcasecmp(arg, "none") == 0;
    const char *problem;

    if (config->headers == NULL) {
        config->headers = apr_array_make(cmd->pool, 4,
                                         sizeof(agent_header_pattern_t));
    }
    else if (is_none || apr_is_empty_array(config->headers)) {
        return apr_psprintf(cmd->pool,
                            "AgentConfigurableHeaders: expected None alone, "
                            "got '%s' beside another value",
                            arg);
    }
    if (is_none) {
        return NULL;
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

static bool is_deployment_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_");

    return text[length] == '\0' && length <= AGENT_DEPLOYMENT_NAME_MAX
        && strspn(text, letters) > 0;
}

const char *agent_directive_deployment(cmd_parms *cmd, void *dir,
                                       const char *name, const char *account)
{
    static const char prefix[] = "account=";
    agent_dir_config_t *config = dir;
    char id[AGENT_UUID_SIZE] = AGENT_ACCOUNT_ID;

    if (!is_deployment_name(name)) {
        return apr_psprintf(cmd->pool,
                            "AgentDeployment: expected 1 to %d lower case "
                            "letters, digits, - and _, a letter or digit "
                            "first, got '%s'",
                            AGENT_DEPLOYMENT_NAME_MAX, name);
    }
    if (account != NULL
        && (strncmp(account, prefix, strlen(prefix)) != 0
            || !agent_uuid_parse(id, account + strlen(prefix)))) {
        return apr_psprintf(cmd->pool,
                            "AgentDeployment: expected account= and the id of "
                            "an account after the name, got '%s'",
                            account);
    }
    config->deployment = agent_deployment_print(
        name, apr_pstrdup(cmd->pool, id), cmd->pool);
    agent_unused_directive_note(cmd, config->deployment);
    return NULL;
}

const char *agent_directive_trust(cmd_parms *cmd, void *dir, const char *arg)
{
    agent_dir_config_t *config = dir;
    agent_address_block_t block;
    bool is_none = strcasecmp(arg, "none") == 0;

    if (config->trusted == NULL) {
        config->trusted = apr_array_make(cmd->pool, 2,
                                         sizeof(agent_address_block_t));
    }
    else if (is_none || apr_is_empty_array(config->trusted)) {
        return apr_psprintf(cmd->pool,
                            "AgentTrustUserHeader: expected None alone, got "
                            "'%s' beside another value",
                            arg);
    }
    if (is_none) {
        return NULL;
    }
    if (!agent_address_read_block(&block, arg)) {
        return apr_psprintf(cmd->pool,
                            "AgentTrustUserHeader: expected %s, or None, got "
                            "'%s'",
                            agent_address_expected(arg), arg);
    }
    /* A block without an IPv4 form is compared as it is. */
    agent_address_unmap_block(&block);
    APR_ARRAY_PUSH(config->trusted, agent_address_block_t) = block;
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and stores the directives; vhost.c checks them together. An error
 * names the directive, what was expected and what was given; httpd adds file
 * and line. */
#include "directives.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include <apr_network_io.h>
#include <apr_strings.h>

#include "../counter/table.h"
#include "../private.h"
#include "config.h"
#include "directive.h"
#include "directives_store.h"

static const char *get_where(const cmd_parms *cmd)
{
    return apr_psprintf(cmd->pool, "line %d of %s", cmd->directive->line_num,
                        cmd->directive->filename);
}

/* "DIRECTIVE: PROBLEM" */
static const char *fail(const cmd_parms *cmd, const char *problem)
{
    return apr_pstrcat(cmd->pool, cmd->cmd->name, ": ", problem, NULL);
}

/* The settings common to all virtual hosts; NULL inside of <VirtualHost>. */
static rlr_global_t *find_global(const char **problem, cmd_parms *cmd)
{
    *problem = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    return *problem == NULL ? rlr_config_get(cmd->server)->global : NULL;
}

/* ---- The table ---- */

static const char *add_rule(cmd_parms *cmd, void *dir, int argc,
                            char *const argv[])
{
    const char *problem;
    rlr_global_t *global = find_global(&problem, cmd);
    rlr_rule_t *rule;

    if (global == NULL) {
        return problem;
    }
    if (rlr_rule_parse(&rule, argc, argv, &problem, cmd->pool) != APR_SUCCESS) {
        return fail(cmd, problem);
    }
    if (rlr_config_find_rule(global, rule->name) != NULL) {
        return rlr_directive_expect(cmd, "each rule's name once", rule->name);
    }
    rule->where = get_where(cmd);
    APR_ARRAY_PUSH(global->rules, const rlr_rule_t *) = rule;
    return NULL;
}

static const char *add_override(cmd_parms *cmd, void *dir, const char *key,
                                const char *rule, const char *limit)
{
    const char *problem;
    rlr_global_t *global = find_global(&problem, cmd);
    rlr_override_t override = {{{0}}, NULL, {0, 0}, get_where(cmd)};

    if (global == NULL) {
        return problem;
    }
    if (!rlr_digest_parse(&override.key, key)) {
        return rlr_directive_expect(cmd, "sha256: and 32 hex digits", key);
    }
    if (rlr_rule_parse_limit(&override.limit, limit, &problem, cmd->pool)
        != APR_SUCCESS) {
        return fail(cmd, problem);
    }
    override.rule = strcmp(rule, "*") == 0 ? NULL : rule;
    APR_ARRAY_PUSH(global->overrides, rlr_override_t) = override;
    return NULL;
}

static const char *set_new_identities(cmd_parms *cmd, void *dir,
                                      const char *arg)
{
    const char *problem;
    rlr_global_t *global = find_global(&problem, cmd);

    if (global == NULL) {
        return problem;
    }
    if (strcasecmp(arg, "Off") == 0) {
        global->new_identities.count = 0;
        return NULL;
    }
    if (rlr_rule_parse_limit(&global->new_identities, arg, &problem, cmd->pool)
        != APR_SUCCESS) {
        return fail(cmd, apr_pstrcat(cmd->pool, problem, " (or Off)", NULL));
    }
    return NULL;
}

static const char *set_table(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *problem;
    rlr_global_t *global = find_global(&problem, cmd);

    return global == NULL
        ? problem
        : rlr_directive_number(&global->table_slots, cmd, arg,
                               RLR_TABLE_SLOTS_MIN, RLR_TABLE_SLOTS_MAX);
}

/* ---- Per server ---- */

static const char *set_region(cmd_parms *cmd, void *dir, const char *arg)
{
    rlr_config_t *config = rlr_config_get(cmd->server);

    if (!rlr_rule_is_name(arg)) {
        return rlr_directive_expect(cmd, "a region of letters, digits, - and _",
                                    arg);
    }
    config->region = arg;
    config->region_where = get_where(cmd);
    return NULL;
}

static rlr_engine_t parse_engine(const char *arg)
{
    if (strcasecmp(arg, "On") == 0) {
        return RLR_ENGINE_ON;
    }
    if (strcasecmp(arg, "DryRun") == 0) {
        return RLR_ENGINE_DRY_RUN;
    }
    return strcasecmp(arg, "Off") == 0 ? RLR_ENGINE_OFF : RLR_ENGINE_UNSET;
}

/* RateLimitEngine On|Off|DryRun [RULE...] */
static const char *set_engine(cmd_parms *cmd, void *dir, int argc,
                              char *const argv[])
{
    rlr_config_t *config = rlr_config_get(cmd->server);
    const char *word = argc > 0 ? argv[0] : "";
    rlr_engine_t engine = parse_engine(word);

    if (engine == RLR_ENGINE_UNSET) {
        return rlr_directive_expect(cmd, "On, Off or DryRun", word);
    }
    if (argc == 1) {
        config->engine = engine;
    }
    for (int i = 1; i < argc; i++) {
        rlr_rule_engine_t *entry = apr_array_push(config->rule_engines);

        entry->rule = argv[i];
        entry->engine = engine;
        entry->where = get_where(cmd);
    }
    return NULL;
}

static const char *set_flag(cmd_parms *cmd, void *dir, int on)
{
    const size_t *offset = cmd->info;
    char *config = (char *)rlr_config_get(cmd->server);

    *(int *)(config + *offset) = on;
    return NULL;
}

static const char *set_scope(cmd_parms *cmd, void *dir, const char *arg)
{
    rlr_config_t *config = rlr_config_get(cmd->server);

    if (strcasecmp(arg, "Region") == 0) {
        config->scope = RLR_SCOPE_REGION;
    }
    else if (strcasecmp(arg, "Host") == 0) {
        config->scope = RLR_SCOPE_HOST;
    }
    else {
        return rlr_directive_expect(cmd, "Region or Host", arg);
    }
    return NULL;
}

static const char *set_ipv6_prefix(cmd_parms *cmd, void *dir, const char *arg)
{
    return rlr_directive_number(&rlr_config_get(cmd->server)->ipv6_prefix, cmd,
                                arg, 1, 128);
}

static const char *set_strip_prefix(cmd_parms *cmd, void *dir, const char *arg)
{
    rlr_config_t *config = rlr_config_get(cmd->server);

    if (strcasecmp(arg, "None") == 0) {
        config->strip_prefix = "";
        return NULL;
    }
    if (arg[0] != '/' || arg[1] == '\0'
        || !rlr_match_is_normal(arg, cmd->temp_pool)) {
        return rlr_directive_expect(
            cmd,
            "None, or a path that begins with / and does not end "
            "with it",
            arg);
    }
    config->strip_prefix = arg;
    return NULL;
}

static const char *set_key_pattern(cmd_parms *cmd, void *dir, const char *arg)
{
    ap_regex_t *pattern = ap_pregcomp(cmd->pool, arg, AP_REG_NOSUB);

    if (pattern == NULL) {
        return rlr_directive_expect(cmd, "a regular expression", arg);
    }
    rlr_config_get(cmd->server)->key_pattern = pattern;
    rlr_config_get(cmd->server)->key_pattern_text = arg;
    return NULL;
}

/* An address or a network in CIDR notation. */
static const char *add_exempt_network(cmd_parms *cmd, const char *arg)
{
    rlr_config_t *config = rlr_config_get(cmd->server);
    char *address = apr_pstrdup(cmd->pool, arg);
    char *bits = strchr(address, '/');
    apr_ipsubnet_t *network;

    if (bits != NULL) {
        *bits++ = '\0';
    }
    if (apr_ipsubnet_create(&network, address, bits, cmd->pool)
        != APR_SUCCESS) {
        return rlr_directive_expect(
            cmd, "ADDRESS, ADDRESS/BITS or sha256: and 32 hex digits", arg);
    }
    APR_ARRAY_PUSH(config->exempt_networks, apr_ipsubnet_t *) = network;
    return NULL;
}

static const char *add_exempt(cmd_parms *cmd, void *dir, const char *arg)
{
    rlr_config_t *config = rlr_config_get(cmd->server);
    rlr_digest_t key;

    APR_ARRAY_PUSH(config->exempt_texts, const char *) = arg;
    if (rlr_digest_parse(&key, arg)) {
        APR_ARRAY_PUSH(config->exempt_keys, rlr_digest_t) = key;
        return NULL;
    }
    return add_exempt_network(cmd, arg);
}

static const size_t headers = offsetof(rlr_config_t, headers);
static const size_t head_as_get = offsetof(rlr_config_t, head_as_get);

/* command_rec's data pointer is not const. */
#define DATA(object) ((void *)&(object))

const command_rec rlr_directives[] = {
    AP_INIT_TAKE_ARGV("RateLimitRule", add_rule, NULL, RSRC_CONF,
                      "NAME \"[METHOD ]PATH\"... key=KEY "
                      "REGION=COUNT/INTERVAL... [CATEGORY] (default: none)"),
    AP_INIT_TAKE1(
        "RateLimitTable", set_table, NULL, RSRC_CONF,
        "slots of the shared table, one per live key (default: 65536)"),
    AP_INIT_TAKE3("RateLimitOverride", add_override, NULL, RSRC_CONF,
                  "sha256:HASH RULE|* COUNT/INTERVAL: the limit of one key "
                  "(default: none)"),
    AP_INIT_TAKE1("RateLimitNewIdentities", set_new_identities, NULL, RSRC_CONF,
                  "COUNT/INTERVAL: new keys that one address may send "
                  "(default: Off)"),
    AP_INIT_TAKE1("RateLimitStore", rlr_directives_store, NULL, RSRC_CONF,
                  "redis://HOST:PORT/DB: shares limits with other hosts "
                  "(default: none)"),
    AP_INIT_TAKE1("RateLimitStoreHosts", rlr_directives_store_hosts, NULL,
                  RSRC_CONF, "hosts that share the store (default: none)"),
    AP_INIT_TAKE1("RateLimitStoreTimeout", rlr_directives_store_timeout, NULL,
                  RSRC_CONF,
                  "the longest wait of a request for the store "
                  "(default: 5ms)"),
    AP_INIT_TAKE1("RateLimitStoreFailure", rlr_directives_store_failure, NULL,
                  RSRC_CONF,
                  "local, closed or open: decisions without the store "
                  "(default: local)"),
    AP_INIT_TAKE1("RateLimitStoreShareTime", rlr_directives_store_share_time,
                  NULL, RSRC_CONF,
                  "how long a host without the store admits its share "
                  "(default: 1h)"),
    AP_INIT_TAKE1("RateLimitStorePasswordFile",
                  rlr_directives_store_password_file, NULL, RSRC_CONF,
                  "file with the password of the store (default: none)"),
    AP_INIT_TAKE_ARGV(
        "RateLimitStoreTLS", rlr_directives_store_tls, NULL, RSRC_CONF,
        "ca=FILE, certificate=FILE, key=FILE, name=NAME for a store with TLS "
        "(default: the system's authorities)"),
    AP_INIT_TAKE1("RateLimitRegion", set_region, NULL, RSRC_CONF,
                  "region whose limits this server enforces (default: none)"),
    AP_INIT_TAKE_ARGV(
        "RateLimitEngine", set_engine, NULL, RSRC_CONF,
        "On, Off or DryRun, for the server or for the named rules "
        "(default: On)"),
    AP_INIT_TAKE1("RateLimitScope", set_scope, NULL, RSRC_CONF,
                  "Region: all virtual hosts of a region share counters; "
                  "Host: this one has its own (default: Region)"),
    AP_INIT_FLAG("RateLimitHeaders", set_flag, DATA(headers), RSRC_CONF,
                 "RateLimit and RateLimit-Policy on admitted responses "
                 "(default: On)"),
    AP_INIT_FLAG("RateLimitHeadAsGet", set_flag, DATA(head_as_get), RSRC_CONF,
                 "HEAD is limited by rules for GET (default: Off)"),
    AP_INIT_TAKE1("RateLimitIPv6Prefix", set_ipv6_prefix, NULL, RSRC_CONF,
                  "bits of an IPv6 address that make one client (default: 64)"),
    AP_INIT_TAKE1("RateLimitStripPrefix", set_strip_prefix, NULL, RSRC_CONF,
                  "path prefix that is removed before rules are tested "
                  "(default: None)"),
    AP_INIT_TAKE1("RateLimitKeyPattern", set_key_pattern, NULL, RSRC_CONF,
                  "regular expression of valid API keys; others count as "
                  "absent (default: none)"),
    AP_INIT_ITERATE("RateLimitExempt", add_exempt, NULL, RSRC_CONF,
                    "addresses, networks and key hashes that are not limited "
                    "(default: none)"),
    {.name = NULL}};

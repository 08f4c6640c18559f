/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the configuration and builds the limits of each virtual host. */
#include "vhost.h"

#include <string.h>

#include <apr_strings.h>
#include <http_core.h>

#include "../private.h"
#include "config.h"
#include "vhost_check.h"
#include "vhosts.h"

/* Checked here, and not when the table is created: that would stop a running
 * httpd at a restart. */
static const char *check_size(server_rec *main_server, apr_pool_t *pool)
{
    int rows = rlr_vhosts_row_names(main_server, pool)->nelts;

    return rows <= (int)RLR_TABLE_ROWS_MAX
        ? NULL
        : apr_psprintf(pool,
                       "RateLimitRule: expected at most %u rules, counted once "
                       "in each region that a server has, and %d more for each "
                       "region, got %d",
                       RLR_TABLE_ROWS_MAX, RLR_VHOSTS_EXTRA_ROWS, rows);
}

/* ---- Building ---- */

static const rlr_quota_t *make_quota(const rlr_rule_t *rule, rlr_limit_t limit,
                                     apr_pool_t *pool)
{
    rlr_quota_t *quota = apr_palloc(pool, sizeof(*quota));

    rlr_quota_init(quota, rule->name, limit, pool);
    return quota;
}

/* The overrides of a rule, or NULL. An override that names the rule wins over
 * one for all rules. */
static apr_hash_t *collect_overrides(const rlr_global_t *global,
                                     const rlr_rule_t *rule, apr_pool_t *pool)
{
    apr_hash_t *found = apr_hash_make(pool);

    for (int named = 0; named <= 1; named++) {
        for (int i = 0; i < global->overrides->nelts; i++) {
            rlr_override_t *entry = &APR_ARRAY_IDX(global->overrides, i,
                                                   rlr_override_t);
            bool fits = entry->rule == NULL
                ? !named && rule->key == RLR_KEY_API
                : named && strcmp(entry->rule, rule->name) == 0;

            if (fits) {
                apr_hash_set(found, entry->key.bytes, RLR_DIGEST_BYTES,
                             make_quota(rule, entry->limit, pool));
            }
        }
    }
    return apr_hash_count(found) > 0 ? found : NULL;
}

/* The longest interval of a rule and its overrides. */
static uint32_t find_longest(const rlr_vhost_rule_t *entry)
{
    uint32_t longest_sec = entry->quota.limit.interval_sec;
    apr_hash_index_t *at = entry->overrides != NULL
        ? apr_hash_first(NULL, entry->overrides)
        : NULL;

    for (; at != NULL; at = apr_hash_next(at)) {
        const rlr_quota_t *quota = apr_hash_this_val(at);

        if (quota->limit.interval_sec > longest_sec) {
            longest_sec = quota->limit.interval_sec;
        }
    }
    return longest_sec;
}

static void add_rule(rlr_vhost_t *vhost, const rlr_config_t *config,
                     const rlr_rule_t *rule, apr_pool_t *pool)
{
    const rlr_limit_t *limit = rlr_rule_limit(rule, vhost->region);
    rlr_engine_t engine = rlr_config_engine(config, rule->name);
    rlr_vhost_rule_t *entry;

    if (limit == NULL || engine == RLR_ENGINE_OFF) {
        return;
    }
    entry = apr_array_push(vhost->rules);
    memset(entry, 0, sizeof(*entry));
    entry->rule = rule;
    rlr_quota_init(&entry->quota, rule->name, *limit, pool);
    entry->dry_run = engine == RLR_ENGINE_DRY_RUN;
    entry->row_name = rlr_vhosts_name_row(vhost->region, rule, pool);
    entry->overrides = collect_overrides(config->global, rule, pool);
    entry->longest_sec = find_longest(entry);
    if (entry->longest_sec > vhost->longest_sec) {
        vhost->longest_sec = entry->longest_sec;
    }
}

/* A byte with the length, then the text; it has room for every DNS name.
 * Virtual hosts that share counters have an empty text. */
static void set_scope(rlr_vhost_t *vhost, const rlr_config_t *config,
                      const server_rec *server, apr_pool_t *pool)
{
    const char *host = server->server_hostname ? server->server_hostname : "";
    const char *text = config->scope == RLR_SCOPE_HOST
        ? apr_psprintf(pool, "%.249s:%u", host, server->port)
        : "";
    size_t length = strlen(text);
    char *scope = apr_palloc(pool, 1 + length);

    scope[0] = (char)length;
    memcpy(scope + 1, text, length);
    vhost->scope = scope;
    vhost->scope_length = 1 + length;
}

/* Paths are normalized as httpd does before it routes. */
static unsigned read_slashes(const server_rec *server)
{
    const core_dir_config *paths = ap_get_core_module_config(
        server->lookup_defaults);
    const core_server_config *core = ap_get_core_module_config(
        server->module_config);
    unsigned slashes = 0;

    if (paths->allow_encoded_slashes && paths->decode_encoded_slashes) {
        slashes |= RLR_SLASH_DECODE;
    }
    if (core->merge_slashes == AP_CORE_CONFIG_OFF) {
        slashes |= RLR_SLASH_KEEP;
    }
    return slashes;
}

static void set_options(rlr_vhost_t *vhost, const rlr_config_t *config,
                        const server_rec *server)
{
    vhost->ipv6_prefix = rlr_config_ipv6_prefix(config);
    vhost->headers = config->headers != 0;
    vhost->head_as_get = config->head_as_get == 1;
    vhost->slashes = read_slashes(server);
    if (config->strip_prefix != NULL && *config->strip_prefix != '\0') {
        vhost->strip_prefix = config->strip_prefix;
    }
    vhost->key_pattern = config->key_pattern;
    vhost->exempt_networks = config->exempt_networks;
    vhost->exempt_keys = config->exempt_keys;
    vhost->new_keys.limit = config->global->new_identities;
    vhost->new_keys.dry_run = rlr_config_server_engine(config)
        == RLR_ENGINE_DRY_RUN;
}

const rlr_rule_t **rlr_vhost_list_rules(const rlr_vhost_t *vhost,
                                        apr_pool_t *pool)
{
    int count = vhost->rules->nelts;
    const rlr_rule_t **rules = apr_palloc(
        pool, (size_t)count * sizeof(const rlr_rule_t *));

    for (int i = 0; i < count; i++) {
        rules[i] = APR_ARRAY_IDX(vhost->rules, i, rlr_vhost_rule_t).rule;
    }
    return rules;
}

static void make_rules(rlr_vhost_t *vhost, const rlr_config_t *config,
                       apr_pool_t *pool)
{
    const apr_array_header_t *rules = config->global->rules;

    vhost->rules = apr_array_make(pool, rules->nelts, sizeof(rlr_vhost_rule_t));
    for (int i = 0; i < rules->nelts; i++) {
        add_rule(vhost, config, APR_ARRAY_IDX(rules, i, const rlr_rule_t *),
                 pool);
    }
    vhost->lookup = rlr_lookup_make(rlr_vhost_list_rules(vhost, pool),
                                    vhost->rules->nelts, vhost->strip_prefix,
                                    pool);
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool has_same_engines(const rlr_config_t *a, const rlr_config_t *b)
{
    bool same = rlr_config_server_engine(a) == rlr_config_server_engine(b)
        && a->rule_engines->nelts == b->rule_engines->nelts;

    for (int i = 0; same && i < a->rule_engines->nelts; i++) {
        const rlr_rule_engine_t *one = &APR_ARRAY_IDX(a->rule_engines, i,
                                                      rlr_rule_engine_t);
        const rlr_rule_engine_t *other = &APR_ARRAY_IDX(b->rule_engines, i,
                                                        rlr_rule_engine_t);

        same = one->engine == other->engine
            && strcmp(one->rule, other->rule) == 0;
    }
    return same;
}

/* An earlier server's rlr_vhost_t with equal rules, or NULL. */
static const rlr_vhost_t *find_equal_vhost(const rlr_config_t *config,
                                           const server_rec *main_server,
                                           const server_rec *server)
{
    for (; main_server != server; main_server = main_server->next) {
        const rlr_config_t *other = rlr_config_get(main_server);

        if (other->vhost != NULL && is_same_text(other->region, config->region)
            && is_same_text(other->strip_prefix, config->strip_prefix)
            && has_same_engines(other, config)) {
            return other->vhost;
        }
    }
    return NULL;
}

/* Hundreds of servers may have the same hundreds of rules, which are built
 * once. */
static rlr_vhost_t *build_vhost(const rlr_config_t *config, server_rec *server,
                                const server_rec *main_server, apr_pool_t *pool)
{
    const rlr_vhost_t *equal = find_equal_vhost(config, main_server, server);
    rlr_vhost_t *vhost = apr_pcalloc(pool, sizeof(*vhost));

    vhost->region = config->region;
    set_scope(vhost, config, server, pool);
    set_options(vhost, config, server);
    if (equal != NULL) {
        vhost->rules = equal->rules;
        vhost->longest_sec = equal->longest_sec;
        vhost->lookup = equal->lookup;
    }
    else {
        make_rules(vhost, config, pool);
    }
    return vhost;
}

/* A virtual host without a directive of this module shares the main server's
 * configuration, but its rlr_vhost_t may differ, for example in the name. */
static rlr_config_t *own_config(server_rec *server,
                                const server_rec *main_server, apr_pool_t *pool)
{
    rlr_config_t *config = rlr_config_get(server);

    if (server != main_server && config == rlr_config_get(main_server)) {
        config = apr_pmemdup(pool, config, sizeof(*config));
        config->vhost = NULL;
        ap_set_module_config(server->module_config, &ratelimit_regional_module,
                             config);
    }
    return config;
}

static const char *build_server(server_rec *server,
                                const server_rec *main_server, apr_pool_t *pool)
{
    rlr_config_t *config = own_config(server, main_server, pool);
    const char *problem = rlr_vhost_check_region(config, pool);

    if (problem == NULL) {
        problem = rlr_vhost_check_engines(config, pool);
    }
    if (problem == NULL && config->region != NULL
        && rlr_config_server_engine(config) != RLR_ENGINE_OFF) {
        config->vhost = build_vhost(config, server, main_server, pool);
    }
    return problem;
}

const char *rlr_vhost_build(server_rec *main_server, apr_pool_t *pool)
{
    const rlr_config_t *config = rlr_config_get(main_server);
    const char *problem = rlr_vhost_check_overrides(config->global, pool);
    bool has_region = config->global->rules->nelts == 0
        || rlr_config_server_engine(config) == RLR_ENGINE_OFF;

    for (server_rec *server = main_server; server != NULL && problem == NULL;
         server = server->next) {
        problem = build_server(server, main_server, pool);
        has_region = has_region || rlr_config_get(server)->region != NULL;
    }
    if (problem == NULL && !has_region) {
        problem = apr_psprintf(pool,
                               "RateLimitRegion: expected one of %s, or "
                               "RateLimitEngine Off, got none",
                               rlr_vhost_check_regions(config->global, pool));
    }
    if (problem == NULL) {
        problem = rlr_config_check_store(config->global, pool);
    }
    return problem != NULL ? problem : check_size(main_server, pool);
}

const char *rlr_vhost_server_name(const server_rec *server, apr_pool_t *pool)
{
    const char *host = server->server_hostname ? server->server_hostname
                                               : "(main server)";

    return server->port == 0 ? host
                             : apr_psprintf(pool, "%s:%u", host, server->port);
}

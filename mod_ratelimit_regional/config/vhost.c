/* SPDX-License-Identifier: Apache-2.0 */
/* Works out what each virtual host limits; see site.h. */
#include "vhost.h"

#include <string.h>

#include <apr_strings.h>
#include <http_core.h>

#include "config.h"
#include "../private.h"

/* Slots that belong to no rule; * is in no rule's name. */
#define NEW_SLOT_NAME     "*new"
#define KNOWN_SLOT_NAME   "*known"
#define WARNING_SLOT_NAME "*warning"

static const char *const extra_slots[] = {NEW_SLOT_NAME, KNOWN_SLOT_NAME,
                                          WARNING_SLOT_NAME};
#define EXTRA_SLOTS (sizeof(extra_slots) / sizeof(extra_slots[0]))

/* ---- Names of slots: counters follow them ---- */

static const char *name_rule_slot(const char *region, const rlr_rule_t *rule,
                                  apr_pool_t *pool)
{
    return apr_pstrcat(pool, region, "/", rule->name, "/",
                       rlr_rule_key_name(rule->key), NULL);
}

static const char *name_extra_slot(const char *region, const char *name,
                                   apr_pool_t *pool)
{
    return apr_pstrcat(pool, region, "/", name, NULL);
}

/* ---- Checks that need the whole configuration ---- */

/* The regions of all rules, for people. */
static const char *list_regions(const rlr_global_t *global, apr_pool_t *pool)
{
    const apr_array_header_t *regions = rlr_config_regions(global, pool);

    return regions->nelts == 0 ? "there is no RateLimitRule"
                               : apr_array_pstrcat(pool, regions, ' ');
}

static const char *check_region(const rlr_config_t *config, apr_pool_t *pool)
{
    if (config->region == NULL
        || rlr_config_has_region(config->global, config->region)) {
        return NULL;
    }
    return apr_psprintf(pool,
                        "%s: RateLimitRegion: expected a region that a "
                        "RateLimitRule has a limit for (%s), got '%s'",
                        config->region_where,
                        list_regions(config->global, pool), config->region);
}

static const char *check_rule_engines(const rlr_config_t *config,
                                      apr_pool_t *pool)
{
    /* Bounded: the first error is the last. */
    for (int i = 0; i < config->rule_engines->nelts; i++) {
        const rlr_rule_engine_t *entry = &APR_ARRAY_IDX(config->rule_engines, i,
                                                        rlr_rule_engine_t);

        if (rlr_config_find_rule(config->global, entry->rule) == NULL) {
            return apr_psprintf(pool,
                                "%s: RateLimitEngine: expected the name of a "
                                "RateLimitRule, got '%s'",
                                entry->where, entry->rule);
        }
    }
    return NULL;
}

static const char *check_overrides(const rlr_global_t *global, apr_pool_t *pool)
{
    /* Bounded: the first error is the last. */
    for (int i = 0; i < global->overrides->nelts; i++) {
        const rlr_override_t *entry = &APR_ARRAY_IDX(global->overrides, i,
                                                     rlr_override_t);
        const rlr_rule_t *rule;

        if (entry->rule == NULL) {
            continue;
        }
        rule = rlr_config_find_rule(global, entry->rule);
        if (rule == NULL || rule->key == RLR_KEY_IP) {
            return apr_psprintf(pool,
                                "%s: RateLimitOverride: expected the name of a "
                                "RateLimitRule with key=api-key or "
                                "key=user+ip, or *, got '%s'",
                                entry->where, entry->rule);
        }
    }
    return NULL;
}

/* Found at a restart, it would end an httpd that was serving. */
static const char *check_size(server_rec *main_server, apr_pool_t *pool)
{
    int rows = rlr_site_slot_names(main_server, pool)->nelts;

    return rows <= (int)RLR_TABLE_RULES_MAX
        ? NULL
        : apr_psprintf(pool,
                       "RateLimitRule: expected at most %u rules, counted once "
                       "in each region that a server has, and %d more for each "
                       "region, got %d",
                       RLR_TABLE_RULES_MAX, (int)EXTRA_SLOTS, rows);
}

/* ---- Building ---- */

static const rlr_quota_t *make_quota(const rlr_rule_t *rule, rlr_limit_t limit,
                                     apr_pool_t *pool)
{
    rlr_quota_t *quota = apr_palloc(pool, sizeof(*quota));

    rlr_quota_init(quota, rule->name, limit, pool);
    return quota;
}

/* The limits of single keys under a rule, or NULL when there are none. What
 * is said of the rule by its name wins over what is said of all. */
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

static void add_rule(rlr_site_t *site, const rlr_config_t *config,
                     const rlr_rule_t *rule, apr_pool_t *pool)
{
    const rlr_limit_t *limit = rlr_rule_limit(rule, site->region);
    rlr_engine_t engine = rlr_config_engine(config, rule->name);
    rlr_site_rule_t *entry;

    if (limit == NULL || engine == RLR_ENGINE_OFF) {
        return;
    }
    entry = apr_array_push(site->rules);
    memset(entry, 0, sizeof(*entry));
    entry->rule = rule;
    rlr_quota_init(&entry->quota, rule->name, *limit, pool);
    entry->dry_run = engine == RLR_ENGINE_DRY_RUN;
    entry->overrides = collect_overrides(config->global, rule, pool);
}

/* One byte of length, then the text, which has room for every name of DNS;
 * hosts that share counters have none. */
static void set_scope(rlr_site_t *site, const rlr_config_t *config,
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
    site->scope = scope;
    site->scope_length = 1 + length;
}

/* The limiter must see the path that httpd will route on. */
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

static void set_options(rlr_site_t *site, const rlr_config_t *config,
                        const server_rec *server)
{
    site->ipv6_prefix = rlr_config_ipv6_prefix(config);
    site->headers = config->headers != 0;
    site->head_as_get = config->head_as_get == 1;
    site->slashes = read_slashes(server);
    if (config->strip_prefix != NULL && *config->strip_prefix != '\0') {
        site->strip_prefix = config->strip_prefix;
    }
    site->key_pattern = config->key_pattern;
    site->exempt_networks = config->exempt_networks;
    site->exempt_keys = config->exempt_keys;
    site->brake.limit = config->global->new_identities;
    site->brake.dry_run = rlr_config_server_engine(config)
        == RLR_ENGINE_DRY_RUN;
}

static const rlr_lookup_t *make_lookup(const rlr_site_t *site, apr_pool_t *pool)
{
    int count = site->rules->nelts;
    const rlr_rule_t **rules = apr_palloc(
        pool, (size_t)count * sizeof(const rlr_rule_t *));

    for (int i = 0; i < count; i++) {
        rules[i] = APR_ARRAY_IDX(site->rules, i, rlr_site_rule_t).rule;
    }
    return rlr_lookup_make(rules, count, site->strip_prefix, pool);
}

static void make_rules(rlr_site_t *site, const rlr_config_t *config,
                       apr_pool_t *pool)
{
    const apr_array_header_t *rules = config->global->rules;

    site->rules = apr_array_make(pool, rules->nelts, sizeof(rlr_site_rule_t));
    for (int i = 0; i < rules->nelts; i++) {
        add_rule(site, config, APR_ARRAY_IDX(rules, i, const rlr_rule_t *),
                 pool);
    }
    site->lookup = make_lookup(site, pool);
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

/* The site of a server before this one that has the same rules, or NULL. */
static const rlr_site_t *find_twin(const rlr_config_t *config,
                                   const server_rec *main_server,
                                   const server_rec *server)
{
    for (; main_server != server; main_server = main_server->next) {
        const rlr_config_t *other = rlr_config_get(main_server);

        if (other->site != NULL && is_same_text(other->region, config->region)
            && is_same_text(other->strip_prefix, config->strip_prefix)
            && has_same_engines(other, config)) {
            return other->site;
        }
    }
    return NULL;
}

/* Hundreds of servers may have the same hundreds of rules: these are made and
 * kept once. */
static rlr_site_t *build_site(const rlr_config_t *config, server_rec *server,
                              const server_rec *main_server, apr_pool_t *pool)
{
    const rlr_site_t *twin = find_twin(config, main_server, server);
    rlr_site_t *site = apr_pcalloc(pool, sizeof(*site));

    site->region = config->region;
    set_scope(site, config, server, pool);
    set_options(site, config, server);
    if (twin != NULL) {
        site->rules = twin->rules;
        site->lookup = twin->lookup;
    }
    else {
        make_rules(site, config, pool);
    }
    return site;
}

/* A virtual host without a directive of ours shares the main server's
 * configuration; its site may differ, by what it is called for example. */
static rlr_config_t *own_config(server_rec *server,
                                const server_rec *main_server, apr_pool_t *pool)
{
    rlr_config_t *config = rlr_config_get(server);

    if (server != main_server && config == rlr_config_get(main_server)) {
        config = apr_pmemdup(pool, config, sizeof(*config));
        config->site = NULL;
        ap_set_module_config(server->module_config, &ratelimit_regional_module,
                             config);
    }
    return config;
}

static const char *build_server(server_rec *server,
                                const server_rec *main_server, apr_pool_t *pool)
{
    rlr_config_t *config = own_config(server, main_server, pool);
    const char *problem = check_region(config, pool);

    if (problem == NULL) {
        problem = check_rule_engines(config, pool);
    }
    if (problem == NULL && config->region != NULL
        && rlr_config_server_engine(config) != RLR_ENGINE_OFF) {
        config->site = build_site(config, server, main_server, pool);
    }
    return problem;
}

const char *rlr_site_build(server_rec *main_server, apr_pool_t *pool)
{
    const rlr_config_t *config = rlr_config_get(main_server);
    const char *problem = check_overrides(config->global, pool);
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
                               list_regions(config->global, pool));
    }
    return problem != NULL ? problem : check_size(main_server, pool);
}

/* ---- After building ---- */

const rlr_site_t *rlr_site_find(server_rec *main_server, const char *region)
{
    for (server_rec *server = main_server; server != NULL;
         server = server->next) {
        const rlr_site_t *site = rlr_config_get(server)->site;

        if (site != NULL
            && (region == NULL || strcmp(site->region, region) == 0)) {
            return site;
        }
    }
    return NULL;
}

apr_array_header_t *rlr_site_regions(server_rec *main_server, apr_pool_t *pool)
{
    apr_array_header_t *regions = apr_array_make(pool, 4, sizeof(const char *));

    for (server_rec *server = main_server; server != NULL;
         server = server->next) {
        const rlr_site_t *site = rlr_config_get(server)->site;

        if (site != NULL && site == rlr_site_find(main_server, site->region)) {
            APR_ARRAY_PUSH(regions, const char *) = site->region;
        }
    }
    return regions;
}

static void add_region_names(apr_array_header_t *names, const char *region,
                             const rlr_global_t *global, apr_pool_t *pool)
{
    for (int i = 0; i < global->rules->nelts; i++) {
        const rlr_rule_t *rule = APR_ARRAY_IDX(global->rules, i,
                                               const rlr_rule_t *);

        if (rlr_rule_limit(rule, region) != NULL) {
            APR_ARRAY_PUSH(names, const char *) = name_rule_slot(region, rule,
                                                                 pool);
        }
    }
    for (size_t i = 0; i < EXTRA_SLOTS; i++) {
        APR_ARRAY_PUSH(names, const char *) = name_extra_slot(
            region, extra_slots[i], pool);
    }
}

apr_array_header_t *rlr_site_slot_names(server_rec *main_server,
                                        apr_pool_t *pool)
{
    const rlr_global_t *global = rlr_config_get(main_server)->global;
    apr_array_header_t *regions = rlr_site_regions(main_server, pool);
    apr_array_header_t *names = apr_array_make(pool, 64, sizeof(const char *));

    for (int i = 0; i < regions->nelts; i++) {
        add_region_names(names, APR_ARRAY_IDX(regions, i, const char *), global,
                         pool);
    }
    return names;
}

static uint32_t find_slot(apr_hash_t *slots, const char *name)
{
    const uint32_t *slot = apr_hash_get(slots, name, APR_HASH_KEY_STRING);

    return slot != NULL ? *slot : 0;
}

static void set_slots(rlr_site_t *site, apr_hash_t *slots, apr_pool_t *pool)
{
    for (int i = 0; i < site->rules->nelts; i++) {
        rlr_site_rule_t *entry = &APR_ARRAY_IDX(site->rules, i,
                                                rlr_site_rule_t);

        entry->slot = find_slot(
            slots, name_rule_slot(site->region, entry->rule, pool));
    }
    site->brake.new_slot = find_slot(
        slots, name_extra_slot(site->region, NEW_SLOT_NAME, pool));
    site->brake.known_slot = find_slot(
        slots, name_extra_slot(site->region, KNOWN_SLOT_NAME, pool));
    site->warning_slot = find_slot(
        slots, name_extra_slot(site->region, WARNING_SLOT_NAME, pool));
}

void rlr_site_set_table(server_rec *main_server, const rlr_table_t *table,
                        const apr_array_header_t *names, const uint32_t *slots,
                        apr_pool_t *pool)
{
    apr_hash_t *by_name = apr_hash_make(pool);

    for (int i = 0; i < names->nelts; i++) {
        apr_hash_set(by_name, APR_ARRAY_IDX(names, i, const char *),
                     APR_HASH_KEY_STRING, &slots[i]);
    }
    for (server_rec *server = main_server; server != NULL;
         server = server->next) {
        rlr_site_t *site = rlr_config_get(server)->site;

        if (site != NULL) {
            set_slots(site, by_name, pool);
            site->table = table;
        }
    }
}

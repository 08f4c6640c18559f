/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, merges and reads the configuration. */
#include "config.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../private.h"

#define PICK(field, unset)                                                     \
    merged->field = add->field != (unset) ? add->field : base->field

static rlr_global_t *create_global(apr_pool_t *pool)
{
    rlr_global_t *global = apr_pcalloc(pool, sizeof(*global));

    global->rules = apr_array_make(pool, 32, sizeof(const rlr_rule_t *));
    global->overrides = apr_array_make(pool, 4, sizeof(rlr_override_t));
    global->table_slots = -1;
    global->store.timeout_ms = RLR_DEFAULT_STORE_TIMEOUT_MS;
    global->store.share_ms = RLR_DEFAULT_STORE_SHARE_MS;
    return global;
}

void *rlr_config_create(apr_pool_t *pool, server_rec *server)
{
    rlr_config_t *config = apr_pcalloc(pool, sizeof(*config));

    config->global = server->is_virtual ? NULL : create_global(pool);
    config->engine = RLR_ENGINE_UNSET;
    config->scope = RLR_SCOPE_UNSET;
    config->headers = -1;
    config->head_as_get = -1;
    config->ipv6_prefix = -1;
    config->rule_engines = apr_array_make(pool, 2, sizeof(rlr_rule_engine_t));
    config->exempt_networks = apr_array_make(pool, 2, sizeof(void *));
    config->exempt_keys = apr_array_make(pool, 2, sizeof(rlr_digest_t));
    config->exempt_texts = apr_array_make(pool, 2, sizeof(const char *));
    return config;
}

void *rlr_config_merge(apr_pool_t *pool, void *base_data, void *add_data)
{
    const rlr_config_t *base = base_data;
    const rlr_config_t *add = add_data;
    rlr_config_t *merged = apr_pcalloc(pool, sizeof(*merged));

    merged->global = base->global;
    PICK(region, NULL);
    PICK(region_where, NULL);
    PICK(engine, RLR_ENGINE_UNSET);
    PICK(scope, RLR_SCOPE_UNSET);
    PICK(headers, -1);
    PICK(head_as_get, -1);
    PICK(ipv6_prefix, -1);
    PICK(strip_prefix, NULL);
    PICK(key_pattern, NULL);
    PICK(key_pattern_text, NULL);
    /* The virtual host's entries come last and win. */
    merged->rule_engines = apr_array_append(pool, base->rule_engines,
                                            add->rule_engines);
    merged->exempt_networks = apr_array_append(pool, base->exempt_networks,
                                               add->exempt_networks);
    merged->exempt_keys = apr_array_append(pool, base->exempt_keys,
                                           add->exempt_keys);
    merged->exempt_texts = apr_array_append(pool, base->exempt_texts,
                                            add->exempt_texts);
    return merged;
}

rlr_config_t *rlr_config_get(const server_rec *server)
{
    return ap_get_module_config(server->module_config,
                                &ratelimit_regional_module);
}

rlr_engine_t rlr_config_server_engine(const rlr_config_t *config)
{
    return config->engine == RLR_ENGINE_UNSET ? RLR_ENGINE_ON : config->engine;
}

rlr_engine_t rlr_config_engine(const rlr_config_t *config, const char *rule)
{
    rlr_engine_t engine = rlr_config_server_engine(config);

    /* Off for the server overrides the engines of single rules. */
    if (engine == RLR_ENGINE_OFF) {
        return engine;
    }
    for (int i = 0; i < config->rule_engines->nelts; i++) {
        const rlr_rule_engine_t *entry = &APR_ARRAY_IDX(config->rule_engines, i,
                                                        rlr_rule_engine_t);

        if (strcmp(entry->rule, rule) == 0) {
            engine = entry->engine;
        }
    }
    return engine;
}

const rlr_rule_t *rlr_config_find_rule(const rlr_global_t *global,
                                       const char *name)
{
    for (int i = 0; i < global->rules->nelts; i++) {
        const rlr_rule_t *rule = APR_ARRAY_IDX(global->rules, i,
                                               const rlr_rule_t *);

        if (strcmp(rule->name, name) == 0) {
            return rule;
        }
    }
    return NULL;
}

static void add_regions(apr_array_header_t *regions, apr_hash_t *seen,
                        const rlr_rule_t *rule)
{
    for (int i = 0; i < rule->limits->nelts; i++) {
        const char *region = APR_ARRAY_IDX(rule->limits, i, rlr_rule_limit_t)
                                 .region;

        if (apr_hash_get(seen, region, APR_HASH_KEY_STRING) == NULL) {
            apr_hash_set(seen, region, APR_HASH_KEY_STRING, region);
            APR_ARRAY_PUSH(regions, const char *) = region;
        }
    }
}

apr_array_header_t *rlr_config_regions(const rlr_global_t *global,
                                       apr_pool_t *pool)
{
    apr_array_header_t *regions = apr_array_make(pool, 4, sizeof(const char *));
    apr_hash_t *seen = apr_hash_make(pool);

    for (int i = 0; i < global->rules->nelts; i++) {
        add_regions(regions, seen,
                    APR_ARRAY_IDX(global->rules, i, const rlr_rule_t *));
    }
    return regions;
}

bool rlr_config_has_region(const rlr_global_t *global, const char *region)
{
    for (int i = 0; i < global->rules->nelts; i++) {
        if (rlr_rule_limit(APR_ARRAY_IDX(global->rules, i, const rlr_rule_t *),
                           region)
            != NULL) {
            return true;
        }
    }
    return false;
}

int rlr_config_table_slots(const rlr_global_t *global)
{
    return global->table_slots == -1 ? RLR_DEFAULT_TABLE_SLOTS
                                     : global->table_slots;
}

int rlr_config_ipv6_prefix(const rlr_config_t *config)
{
    return config->ipv6_prefix == -1 ? RLR_DEFAULT_IPV6_PREFIX
                                     : config->ipv6_prefix;
}

const char *rlr_config_check_store(const rlr_global_t *global, apr_pool_t *pool)
{
    if (global->store.connection.address.count == 0
        && global->store_directive != NULL) {
        return apr_psprintf(pool,
                            "%s: expected RateLimitStore with the address of "
                            "the store, got none",
                            global->store_directive);
    }
    return global->store.connection.address.count != 0
            && global->store.hosts == 0
        ? "RateLimitStoreHosts: expected the number of hosts that share "
          "RateLimitStore, got none"
        : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the rules and regions that directives name exist. */
#include "vhost_check.h"

#include <apr_strings.h>

const char *rlr_vhost_check_regions(const rlr_global_t *global,
                                    apr_pool_t *pool)
{
    const apr_array_header_t *regions = rlr_config_regions(global, pool);

    return regions->nelts == 0 ? "there is no RateLimitRule"
                               : apr_array_pstrcat(pool, regions, ' ');
}

const char *rlr_vhost_check_region(const rlr_config_t *config, apr_pool_t *pool)
{
    if (config->region == NULL
        || rlr_config_has_region(config->global, config->region)) {
        return NULL;
    }
    return apr_psprintf(pool,
                        "%s: RateLimitRegion: expected a region that a "
                        "RateLimitRule has a limit for (%s), got '%s'",
                        config->region_where,
                        rlr_vhost_check_regions(config->global, pool),
                        config->region);
}

const char *rlr_vhost_check_engines(const rlr_config_t *config,
                                    apr_pool_t *pool)
{
    /* Bounded: returns at the first error. */
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

const char *rlr_vhost_check_overrides(const rlr_global_t *global,
                                      apr_pool_t *pool)
{
    /* Bounded: returns at the first error. */
    for (int i = 0; i < global->overrides->nelts; i++) {
        const rlr_override_t *entry = &APR_ARRAY_IDX(global->overrides, i,
                                                     rlr_override_t);
        const rlr_rule_t *rule;

        if (entry->rule == NULL) {
            continue;
        }
        rule = rlr_config_find_rule(global, entry->rule);
        if (rule == NULL || rlr_keys[rule->key].header == NULL) {
            return apr_psprintf(pool,
                                "%s: RateLimitOverride: expected the name of a "
                                "RateLimitRule with %s, or *, got '%s'",
                                entry->where, rlr_key_list(true, pool),
                                entry->rule);
        }
    }
    return NULL;
}

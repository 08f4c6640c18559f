/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as directives.c stores it; unset values are -1 or NULL.
 * vhost.c computes the limits of each virtual host from it. `where` is "line N
 * of FILE", for the errors of checks that need the whole configuration. */
#ifndef RLR_CONFIG_H
#define RLR_CONFIG_H

#include <stdbool.h>

#include <httpd.h>
#include <http_config.h>

#include "../rules/digest.h"
#include "../rules/rule.h"
#include "../store/store.h"

#define RLR_DEFAULT_TABLE_SLOTS      65536
#define RLR_DEFAULT_IPV6_PREFIX      64
#define RLR_DEFAULT_STORE_TIMEOUT_MS 5
#define RLR_DEFAULT_STORE_SHARE_MS   3600000

typedef struct rlr_vhost_t rlr_vhost_t;

typedef enum rlr_engine_t {
    RLR_ENGINE_UNSET = -1,
    RLR_ENGINE_OFF,
    RLR_ENGINE_DRY_RUN,
    RLR_ENGINE_ON
} rlr_engine_t;

typedef enum rlr_scope_t {
    RLR_SCOPE_UNSET = -1,
    RLR_SCOPE_REGION,
    RLR_SCOPE_HOST
} rlr_scope_t;

/* RateLimitEngine of one rule. */
typedef struct rlr_rule_engine_t {
    const char *rule;
    rlr_engine_t engine;
    const char *where;
} rlr_rule_engine_t;

/* RateLimitOverride: the limit of one key. */
typedef struct rlr_override_t {
    rlr_digest_t key;
    /* NULL: every rule with key=api-key. */
    const char *rule;
    rlr_limit_t limit;
    const char *where;
} rlr_override_t;

/* Settings common to all virtual hosts. */
typedef struct rlr_global_t {
    apr_array_header_t *rules;     /* of const rlr_rule_t *, in file order */
    apr_array_header_t *overrides; /* of rlr_override_t */
    /* RateLimitNewIdentities; count 0: no limit. */
    rlr_limit_t new_identities;
    int table_slots;
    /* RateLimitStore...; address.count 0: no store. The last of these
     * directives, or NULL. */
    const char *store_directive;
    rlr_store_config_t store;
} rlr_global_t;

typedef struct rlr_config_t {
    rlr_global_t *global; /* shared by all servers of a configuration */
    const char *region;
    const char *region_where;
    rlr_engine_t engine;
    apr_array_header_t *rule_engines; /* of rlr_rule_engine_t; the last of a
                                       * rule wins */
    rlr_scope_t scope;
    int headers;
    int head_as_get;
    int ipv6_prefix;
    /* "" for none. */
    const char *strip_prefix;
    ap_regex_t *key_pattern;
    const char *key_pattern_text;
    apr_array_header_t *exempt_networks; /* of apr_ipsubnet_t * */
    apr_array_header_t *exempt_keys;     /* of rlr_digest_t */
    apr_array_header_t *exempt_texts;    /* of const char *: all of them */
    /* Computed by the check_config hook; NULL: this server limits nothing. */
    rlr_vhost_t *vhost;
} rlr_config_t;

/* For the module record: a configuration with all values unset, and one of a
 * virtual host with those of the main server (base) where its own (add) are
 * unset. In pool. */
void *rlr_config_create(apr_pool_t *pool, server_rec *server);
void *rlr_config_merge(apr_pool_t *pool, void *base, void *add);

/* Returns the server's configuration, borrowed until the next restart. */
rlr_config_t *rlr_config_get(const server_rec *server);

/* Return the engine of a rule in a server, and of the server itself. */
rlr_engine_t rlr_config_engine(const rlr_config_t *config, const char *rule);
rlr_engine_t rlr_config_server_engine(const rlr_config_t *config);

/* Returns the rule of that name, or NULL. */
const rlr_rule_t *rlr_config_find_rule(const rlr_global_t *global,
                                       const char *name);

/* Returns the regions of all rules in the order of the file: an array of const
 * char *, in pool. */
apr_array_header_t *rlr_config_regions(const rlr_global_t *global,
                                       apr_pool_t *pool);

/* Whether a rule has a limit for the region. */
bool rlr_config_has_region(const rlr_global_t *global, const char *region);

/* Returns NULL, or the error of RateLimitStore without its other
 * directives. */
const char *rlr_config_check_store(const rlr_global_t *global,
                                   apr_pool_t *pool);

/* Return the value, or its default. */
int rlr_config_table_slots(const rlr_global_t *global);
int rlr_config_ipv6_prefix(const rlr_config_t *config);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What httpd.conf says, as directives.c stores it. Unset is -1 or NULL; what
 * follows from it for a virtual host is worked out once, in site.c. `where` is
 * "line N of FILE", for what can only be checked when all is read.
 */
#ifndef RLR_CONFIG_H
#define RLR_CONFIG_H

#include <stdbool.h>

#include <httpd.h>
#include <http_config.h>

#include "../rules/digest.h"
#include "../rules/rule.h"
#include "vhost.h"

#define RLR_DEFAULT_TABLE_SLOTS 65536
#define RLR_DEFAULT_IPV6_PREFIX 64

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

/* RateLimitEngine for one rule. */
typedef struct rlr_rule_engine_t {
    const char *rule;
    rlr_engine_t engine;
    const char *where;
} rlr_rule_engine_t;

/* RateLimitOverride: one key's own limit. */
typedef struct rlr_override_t {
    rlr_digest_t key;
    /* NULL: every rule that counts by the API key. */
    const char *rule;
    rlr_limit_t limit;
    const char *where;
} rlr_override_t;

/* One table and one set of counters serve all virtual hosts. */
typedef struct rlr_global_t {
    apr_array_header_t *rules;     /* of const rlr_rule_t *, in file order */
    apr_array_header_t *overrides; /* of rlr_override_t */
    /* count 0: no brake. */
    rlr_limit_t new_identities;
    int table_slots;
} rlr_global_t;

typedef struct rlr_config_t {
    rlr_global_t *global; /* shared by all servers of a configuration */
    const char *region;
    const char *region_where;
    rlr_engine_t engine;
    apr_array_header_t *rule_engines; /* of rlr_rule_engine_t; last counts */
    rlr_scope_t scope;
    int headers;
    int head_as_get;
    int ipv6_prefix;
    /* "" for none. */
    const char *strip_prefix;
    ap_regex_t *key_pattern;
    apr_array_header_t *exempt_networks; /* of apr_ipsubnet_t * */
    apr_array_header_t *exempt_keys;     /* of rlr_digest_t */
    /* What it all means; NULL: this server limits nothing. Set by the
     * check_config hook. */
    rlr_site_t *site;
} rlr_config_t;

void *rlr_config_create(apr_pool_t *pool, server_rec *server);
void *rlr_config_merge(apr_pool_t *pool, void *base, void *add);

/* The server's configuration; borrowed until the next restart. */
rlr_config_t *rlr_config_get(const server_rec *server);

/* On, Off or DryRun of a rule in that server, with the server's own. */
rlr_engine_t rlr_config_engine(const rlr_config_t *config, const char *rule);
rlr_engine_t rlr_config_server_engine(const rlr_config_t *config);

/* The rule of that name, or NULL. */
const rlr_rule_t *rlr_config_find_rule(const rlr_global_t *global,
                                       const char *name);

/* Every region that a rule has a limit for, in the order of the file: an array
 * of const char *, in pool. */
apr_array_header_t *rlr_config_regions(const rlr_global_t *global,
                                       apr_pool_t *pool);

/* Whether some rule has a limit for the region. */
bool rlr_config_has_region(const rlr_global_t *global, const char *region);

int rlr_config_table_slots(const rlr_global_t *global);
int rlr_config_ipv6_prefix(const rlr_config_t *config);

#endif

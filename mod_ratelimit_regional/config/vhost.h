/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a virtual host: the enabled rules of its region, in order, and
 * all other settings that a request needs. Built by the check_config hook,
 * completed by the post_config hook, read-only afterwards. */
#ifndef RLR_VHOST_H
#define RLR_VHOST_H

#include <stdbool.h>

#include <httpd.h>
#include <apr_hash.h>

#include "../counter/table.h"
#include "../rules/digest.h"
#include "../rules/lookup.h"
#include "../rules/quota.h"
#include "../rules/rule.h"
#include "../store/store.h"

/* A rule as a virtual host applies it. */
typedef struct rlr_vhost_rule_t {
    const rlr_rule_t *rule;
    rlr_quota_t quota;
    /* Counts, but refuses no request. */
    bool dry_run;
    /* The rule's row in the shared table; set with rlr_vhost_t.table. */
    uint32_t row;
    /* Its name, by which all hosts know it. */
    const char *row_name;
    /* Overrides: from the 16 bytes of a digest to rlr_quota_t; or NULL. */
    apr_hash_t *overrides;
    uint32_t longest_sec; /* interval, of the rule and its overrides */
} rlr_vhost_rule_t;

/* RateLimitNewIdentities: how many new keys an address may send. */
typedef struct rlr_new_keys_t {
    /* count 0: no limit. */
    rlr_limit_t limit;
    bool dry_run;
    /* Rows without a rule: new keys per address, and known keys. */
    uint32_t new_row;
    uint32_t known_row;
} rlr_new_keys_t;

typedef struct rlr_vhost_t {
    const char *region;
    /* Shared by all virtual hosts with equal rules. */
    apr_array_header_t *rules; /* of rlr_vhost_rule_t */
    /* The longest interval of these rules and their overrides. */
    uint32_t longest_sec;
    const rlr_lookup_t *lookup;
    rlr_new_keys_t new_keys;
    /* Prefix of every identity: virtual hosts with the same scope share
     * counters. */
    const char *scope;
    size_t scope_length;
    const char *strip_prefix; /* or NULL */
    int ipv6_prefix;
    bool headers;
    bool head_as_get;
    unsigned slashes;                          /* RLR_SLASH_... */
    const ap_regex_t *key_pattern;             /* or NULL */
    const apr_array_header_t *exempt_networks; /* of apr_ipsubnet_t * */
    const apr_array_header_t *exempt_keys;     /* of rlr_digest_t */
    const rlr_table_t *table;
    /* The store, or NULL. */
    const rlr_store_t *store;
    rlr_stats_region_t *store_stats; /* of the region */
    /* The row of the keys that the store may be asked for. */
    uint32_t store_row;
    /* The row of warnings; see warning.h. */
    uint32_t warning_row;
} rlr_vhost_t;

/* Longest scope. */
#define RLR_SCOPE_MAX 255

/* Builds the rlr_vhost_t of each server, in pool. Returns NULL, or the error
 * of an invalid configuration. */
const char *rlr_vhost_build(server_rec *main_server, apr_pool_t *pool);

/* Returns the virtual host's rules in order, vhost->rules->nelts of them, in
 * pool. */
const rlr_rule_t **rlr_vhost_list_rules(const rlr_vhost_t *vhost,
                                        apr_pool_t *pool);

/* Returns the server's name and port for messages, in pool. */
const char *rlr_vhost_server_name(const server_rec *server, apr_pool_t *pool);

#endif

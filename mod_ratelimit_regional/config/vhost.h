/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one virtual host limits: the rows of its region that are switched on,
 * in order, with everything a request needs worked out beforehand. Made by the
 * check_config hook, completed by the post_config hook, read-only afterwards.
 */
#ifndef RLR_SITE_H
#define RLR_SITE_H

#include <stdbool.h>

#include <httpd.h>
#include <apr_hash.h>

#include "../rules/digest.h"
#include "../rules/lookup.h"
#include "../rules/quota.h"
#include "../rules/rule.h"
#include "../counter/table.h"

/* A row of the table as a virtual host applies it. */
typedef struct rlr_site_rule_t {
    const rlr_rule_t *rule;
    rlr_quota_t quota;
    /* Counts, but refuses nothing. */
    bool dry_run;
    /* Where the counters are; set with rlr_site_t.table. */
    uint32_t slot;
    /* Limits of single keys: 16 bytes of digest to rlr_quota_t; or NULL. */
    apr_hash_t *overrides;
} rlr_site_rule_t;

/* RateLimitNewIdentities: how many new keys an address may bring. */
typedef struct rlr_brake_t {
    /* count 0: none. */
    rlr_limit_t limit;
    bool dry_run;
    /* Rows of the table that no rule has: new keys of an address, and keys
     * that have been let in. */
    uint32_t new_slot;
    uint32_t known_slot;
} rlr_brake_t;

typedef struct rlr_site_t {
    const char *region;
    /* These two are one for all servers that they are the same for. */
    apr_array_header_t *rules; /* of rlr_site_rule_t */
    const rlr_lookup_t *lookup;
    rlr_brake_t brake;
    /* Bytes that begin every identity: hosts with the same share counters. */
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
    /* Counts warnings of a full table. */
    uint32_t warning_slot;
} rlr_site_t;

/* Longest scope. */
#define RLR_SCOPE_MAX 255

/*
 * Works out the site of each server, in pool. Returns NULL, or the sentence
 * for a configuration that cannot be meant.
 */
const char *rlr_site_build(server_rec *main_server, apr_pool_t *pool);

/* Logs what is legal and probably not meant: rules that can never match,
 * servers without a region. */
void rlr_site_warn(server_rec *main_server, apr_pool_t *pool);

/* The first server's site that has the region (NULL: any), or NULL. */
const rlr_site_t *rlr_site_find(server_rec *main_server, const char *region);

/* Stable names of all rows of the regions in use, for rlr_table_attach. */
apr_array_header_t *rlr_site_slot_names(server_rec *main_server,
                                        apr_pool_t *pool);

/* Tells all sites their table and the slots of the names given above. */
void rlr_site_set_table(server_rec *main_server, const rlr_table_t *table,
                        const apr_array_header_t *names, const uint32_t *slots,
                        apr_pool_t *pool);

/* The server's name and port for people, in pool. */
const char *rlr_site_server_name(const server_rec *server, apr_pool_t *pool);

/* The regions that servers use, each once, in their order. */
apr_array_header_t *rlr_site_regions(server_rec *main_server, apr_pool_t *pool);

#endif

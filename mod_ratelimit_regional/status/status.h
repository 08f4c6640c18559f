/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of the status page: counters of all rules in all regions. */
#ifndef RLR_STATUS_H
#define RLR_STATUS_H

#include <apr_pools.h>
#include <apr_tables.h>

#include "../counter/walk.h"
#include "../protocol/lease_table.h"
#include "../rules/rule.h"

/* A rule in a region. */
typedef struct rlr_status_row_t {
    const rlr_rule_t *rule;
    rlr_limit_t limit;
    /* on, dry-run, off, or mixed if virtual hosts differ. */
    const char *engine;
    rlr_counters_t counters;
    bool has_live_keys; /* not with a store: leases do not have their rule */
    uint32_t live_keys;
} rlr_status_row_t;

typedef struct rlr_status_region_t {
    const char *region;
    apr_array_header_t *rows; /* of rlr_status_row_t */
    /* RateLimitNewIdentities and its counters; count 0: no limit. */
    rlr_limit_t new_keys;
    rlr_counters_t new_keys_counters;
    const rlr_stats_region_t *store; /* NULL: none */
} rlr_status_region_t;

/* The store, as this host knows it. */
typedef struct rlr_status_store_t {
    const char *host; /* this one */
    uint32_t hosts;   /* RateLimitStoreHosts */
    uint32_t timeout_ms;
    uint32_t advised_ms; /* a longer one that the round trips need, or 0 */
    const rlr_stats_t *stats;
    rlr_shared_summary_t summary;
    rlr_lease_table_count_t leases;
    /* Of the shared table, and its live keys: each one that the store is asked
     * for has a slot. */
    uint32_t table_slots;
    uint32_t table_keys;
    /* For how long the limit of the longest interval admits nothing because
     * the hosts have just started; 0: it admits. */
    uint64_t starting_ms;
} rlr_status_store_t;

typedef struct rlr_status_t {
    apr_array_header_t *regions; /* of rlr_status_region_t */
    /* Of leases, with a store. */
    uint32_t slots;
    uint32_t live_keys;
    const rlr_status_store_t *store; /* NULL: none */
} rlr_status_t;

/* Returns a word for the membership: "member", "starting", "joining",
 * "refused", "away". */
const char *rlr_status_describe_store(const rlr_status_store_t *store);

/* Collects the numbers of all regions, in pool. */
void rlr_status_collect(rlr_status_t *status, apr_pool_t *pool);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the numbers of the status page. */
#include "status.h"

#include <string.h>

#include <http_main.h>

#include "../config/config.h"
#include "../config/vhosts.h"

static const rlr_vhost_rule_t *find_vhost_rule(const rlr_vhost_t *vhost,
                                               const rlr_rule_t *rule)
{
    for (int i = 0; i < vhost->rules->nelts; i++) {
        const rlr_vhost_rule_t *entry = &APR_ARRAY_IDX(vhost->rules, i,
                                                       rlr_vhost_rule_t);

        if (entry->rule == rule) {
            return entry;
        }
    }
    return NULL;
}

static const char *engine_word(const rlr_vhost_rule_t *entry)
{
    if (entry == NULL) {
        return "off";
    }
    return entry->dry_run ? "dry-run" : "on";
}

/* Fills a row from all virtual hosts of the region. */
static void fill_row(rlr_status_row_t *row, const char *region,
                     const uint32_t *keys)
{
    const apr_array_header_t *seen = NULL;

    for (server_rec *server = ap_server_conf; server != NULL;
         server = server->next) {
        const rlr_vhost_t *vhost = rlr_config_get(server)->vhost;
        const rlr_vhost_rule_t *entry;
        const char *engine;

        if (vhost == NULL || vhost->rules == seen
            || strcmp(vhost->region, region) != 0) {
            continue;
        }
        /* Consecutive servers share rules. */
        seen = vhost->rules;
        entry = find_vhost_rule(vhost, row->rule);
        engine = engine_word(entry);
        if (row->engine != NULL && strcmp(row->engine, engine) != 0) {
            engine = "mixed";
        }
        row->engine = engine;
        if (entry != NULL) {
            rlr_walk_counters(vhost->table, entry->row, &row->counters);
            row->live_keys = keys[entry->row];
        }
    }
}

static void collect_region(rlr_status_region_t *region, const uint32_t *keys,
                           apr_pool_t *pool)
{
    const apr_array_header_t *rules = rlr_config_get(ap_server_conf)
                                          ->global->rules;
    const rlr_vhost_t *vhost = rlr_vhosts_find(ap_server_conf, region->region);

    region->rows = apr_array_make(pool, rules->nelts, sizeof(rlr_status_row_t));
    for (int i = 0; i < rules->nelts; i++) {
        const rlr_rule_t *rule = APR_ARRAY_IDX(rules, i, const rlr_rule_t *);
        const rlr_limit_t *limit = rlr_rule_limit(rule, region->region);
        rlr_status_row_t *row;

        if (limit == NULL) {
            continue;
        }
        row = apr_array_push(region->rows);
        memset(row, 0, sizeof(*row));
        row->rule = rule;
        row->limit = *limit;
        row->has_live_keys = vhost->store == NULL;
        fill_row(row, region->region, keys);
    }
    region->new_keys = vhost->new_keys.limit;
    rlr_walk_counters(vhost->table, vhost->new_keys.new_row,
                      &region->new_keys_counters);
    region->store = vhost->store != NULL ? vhost->store_stats : NULL;
}

static rlr_status_store_t *collect_store(const rlr_store_t *store,
                                         apr_pool_t *pool)
{
    rlr_status_store_t *status;
    rlr_time_t now;

    if (store == NULL) {
        return NULL;
    }
    status = apr_palloc(pool, sizeof(*status));
    now = rlr_clock_now();
    status->host = store->member.name;
    status->hosts = store->member.members;
    status->stats = rlr_shared_stats(&store->shared);
    status->timeout_ms = store->config->timeout_ms;
    status->advised_ms = rlr_stats_advise(status->stats, status->timeout_ms);
    rlr_shared_sum_up(&status->summary, &store->shared, true, now.ceil_ms);
    rlr_store_is_starting(store, &status->summary, &status->starting_ms);
    rlr_lease_table_count(&status->leases, &store->shared, now.ceil_ms);
    return status;
}

const char *rlr_status_describe_store(const rlr_status_store_t *store)
{
    if (store->summary.connected == RLR_SHARED_PARTITIONS) {
        return store->starting_ms > 0 ? "starting" : "member";
    }
    if (store->summary.is_refused) {
        return "refused";
    }
    return store->summary.connected > 0 ? "joining" : "away";
}

void rlr_status_collect(rlr_status_t *status, apr_pool_t *pool)
{
    const rlr_vhost_t *any = rlr_vhosts_find(ap_server_conf, NULL);
    apr_array_header_t *names = rlr_vhosts_regions(ap_server_conf, pool);
    uint32_t *keys = apr_pcalloc(pool, RLR_TABLE_ROWS_MAX * sizeof(*keys));
    rlr_status_store_t *store;

    memset(status, 0, sizeof(*status));
    status->regions = apr_array_make(pool, names->nelts,
                                     sizeof(rlr_status_region_t));
    if (any != NULL) {
        status->slots = rlr_walk_slots(any->table);
        status->live_keys = rlr_walk_live_keys(
            any->table, keys, RLR_TABLE_ROWS_MAX, &rlr_clock_monotonic);
        store = collect_store(any->store, pool);
        if (store != NULL) {
            store->table_slots = status->slots;
            store->table_keys = status->live_keys;
            status->slots = store->leases.slots;
            status->live_keys = store->leases.live;
        }
        status->store = store;
    }
    for (int i = 0; i < names->nelts; i++) {
        rlr_status_region_t *region = apr_array_push(status->regions);

        region->region = APR_ARRAY_IDX(names, i, const char *);
        collect_region(region, keys, pool);
    }
}

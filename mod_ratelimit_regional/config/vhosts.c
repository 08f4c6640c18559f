/* SPDX-License-Identifier: Apache-2.0 */
/* All virtual hosts together: their regions, the rows of the table, the
 * store. */
#include "vhosts.h"

#include <string.h>

#include <apr_strings.h>

#include "config.h"

/* Rows without a rule; no rule's name contains *. */
#define NEW_ROW_NAME     "*new"
#define KNOWN_ROW_NAME   "*known"
#define WARNING_ROW_NAME "*warning"
#define STORE_ROW_NAME   "*store"

static const char *const extra_rows[RLR_VHOSTS_EXTRA_ROWS] = {
    NEW_ROW_NAME, KNOWN_ROW_NAME, WARNING_ROW_NAME, STORE_ROW_NAME};

const char *rlr_vhosts_name_row(const char *region, const rlr_rule_t *rule,
                                apr_pool_t *pool)
{
    return apr_pstrcat(pool, region, "/", rule->name, "/",
                       rlr_keys[rule->key].word, NULL);
}

const rlr_vhost_t *rlr_vhosts_find(server_rec *main_server, const char *region)
{
    for (server_rec *server = main_server; server != NULL;
         server = server->next) {
        const rlr_vhost_t *vhost = rlr_config_get(server)->vhost;

        if (vhost != NULL
            && (region == NULL || strcmp(vhost->region, region) == 0)) {
            return vhost;
        }
    }
    return NULL;
}

apr_array_header_t *rlr_vhosts_regions(server_rec *main_server,
                                       apr_pool_t *pool)
{
    apr_array_header_t *regions = apr_array_make(pool, 4, sizeof(const char *));

    for (server_rec *server = main_server; server != NULL;
         server = server->next) {
        const rlr_vhost_t *vhost = rlr_config_get(server)->vhost;

        if (vhost != NULL
            && vhost == rlr_vhosts_find(main_server, vhost->region)) {
            APR_ARRAY_PUSH(regions, const char *) = vhost->region;
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
            APR_ARRAY_PUSH(names, const char *) = rlr_vhosts_name_row(
                region, rule, pool);
        }
    }
    /* Bounded: the rows of one region. */
    for (size_t i = 0; i < RLR_VHOSTS_EXTRA_ROWS; i++) {
        APR_ARRAY_PUSH(names, const char *) = apr_pstrcat(pool, region, "/",
                                                          extra_rows[i], NULL);
    }
}

apr_array_header_t *rlr_vhosts_row_names(server_rec *main_server,
                                         apr_pool_t *pool)
{
    const rlr_global_t *global = rlr_config_get(main_server)->global;
    apr_array_header_t *regions = rlr_vhosts_regions(main_server, pool);
    apr_array_header_t *names = apr_array_make(pool, 64, sizeof(const char *));

    for (int i = 0; i < regions->nelts; i++) {
        add_region_names(names, APR_ARRAY_IDX(regions, i, const char *), global,
                         pool);
    }
    return names;
}

static uint32_t find_row(apr_hash_t *rows, const char *name)
{
    const uint32_t *row = apr_hash_get(rows, name, APR_HASH_KEY_STRING);

    return row != NULL ? *row : 0;
}

static uint32_t find_extra_row(apr_hash_t *rows, const rlr_vhost_t *vhost,
                               const char *name, apr_pool_t *pool)
{
    return find_row(rows, apr_pstrcat(pool, vhost->region, "/", name, NULL));
}

static void set_rows(rlr_vhost_t *vhost, apr_hash_t *rows, apr_pool_t *pool)
{
    for (int i = 0; i < vhost->rules->nelts; i++) {
        rlr_vhost_rule_t *entry = &APR_ARRAY_IDX(vhost->rules, i,
                                                 rlr_vhost_rule_t);

        entry->row = find_row(rows, entry->row_name);
    }
    vhost->new_keys.new_row = find_extra_row(rows, vhost, NEW_ROW_NAME, pool);
    vhost->new_keys.known_row = find_extra_row(rows, vhost, KNOWN_ROW_NAME,
                                               pool);
    vhost->warning_row = find_extra_row(rows, vhost, WARNING_ROW_NAME, pool);
    vhost->store_row = find_extra_row(rows, vhost, STORE_ROW_NAME, pool);
}

void rlr_vhosts_set_table(server_rec *main_server, const rlr_table_t *table,
                          const apr_array_header_t *names, const uint32_t *rows,
                          apr_pool_t *pool)
{
    apr_hash_t *by_name = apr_hash_make(pool);

    for (int i = 0; i < names->nelts; i++) {
        apr_hash_set(by_name, APR_ARRAY_IDX(names, i, const char *),
                     APR_HASH_KEY_STRING, &rows[i]);
    }
    for (server_rec *server = main_server; server != NULL;
         server = server->next) {
        rlr_vhost_t *vhost = rlr_config_get(server)->vhost;

        if (vhost != NULL) {
            set_rows(vhost, by_name, pool);
            vhost->table = table;
        }
    }
}

uint32_t rlr_vhosts_longest_sec(const server_rec *main_server)
{
    uint32_t longest_sec = 0;

    for (const server_rec *server = main_server; server != NULL;
         server = server->next) {
        const rlr_vhost_t *vhost = rlr_config_get(server)->vhost;

        if (vhost != NULL && vhost->longest_sec > longest_sec) {
            longest_sec = vhost->longest_sec;
        }
    }
    return longest_sec;
}

void rlr_vhosts_set_store(server_rec *main_server, const rlr_store_t *store)
{
    for (server_rec *server = main_server; server != NULL;
         server = server->next) {
        rlr_vhost_t *vhost = rlr_config_get(server)->vhost;

        if (vhost != NULL) {
            vhost->store = store;
            vhost->store_stats = rlr_stats_find(
                rlr_shared_stats(&store->shared), vhost->region);
        }
    }
}

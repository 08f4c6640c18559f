/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the loaded table. */
#include "dump.h"

#include <stdio.h>
#include <string.h>

#include <apr_strings.h>
#include <http_core.h>

#include "../private.h"
#include "config.h"
#include "dump_store.h"
#include "vhost.h"

/* Columns before those of the regions. */
#define LEFT_COLUMNS 2

static const char *list_matches(const rlr_rule_t *rule, apr_pool_t *pool)
{
    static const char comma[] = ", ";
    int count = rule->matches->nelts;
    apr_array_header_t *parts = apr_array_make(pool, 2 * count,
                                               sizeof(struct iovec));

    for (int i = 0; i < count; i++) {
        const char *source = APR_ARRAY_IDX(rule->matches, i, rlr_match_t)
                                 .source;

        APR_ARRAY_PUSH(parts, struct iovec) = (struct iovec){
            (void *)comma, i > 0 ? strlen(comma) : 0};
        APR_ARRAY_PUSH(parts, struct iovec) = (struct iovec){(void *)source,
                                                             strlen(source)};
    }
    return apr_pstrcatv(pool, (const struct iovec *)parts->elts,
                        (apr_size_t)parts->nelts, NULL);
}

static const char *format_limit(const rlr_rule_t *rule, const char *region,
                                apr_pool_t *pool)
{
    const rlr_limit_t *limit = rlr_rule_limit(rule, region);

    return limit == NULL
        ? "-"
        : apr_psprintf(pool, "%u / %u", limit->count, limit->interval_sec);
}

/* ---- The table, an array of cells ---- */

static void add_head(apr_array_header_t *cells,
                     const apr_array_header_t *regions, apr_pool_t *pool)
{
    APR_ARRAY_PUSH(cells, const char *) = "Match (method)";
    APR_ARRAY_PUSH(cells, const char *) = "Identity key";
    /* Bounded: a head for each region. */
    for (int i = 0; i < regions->nelts; i++) {
        APR_ARRAY_PUSH(cells, const char *) = apr_psprintf(
            pool, "%s limit", APR_ARRAY_IDX(regions, i, const char *));
    }
    APR_ARRAY_PUSH(cells, const char *) = "Category";
    APR_ARRAY_PUSH(cells, const char *) = "Rule";
}

static void add_row(apr_array_header_t *cells, const rlr_rule_t *rule,
                    const apr_array_header_t *regions, apr_pool_t *pool)
{
    APR_ARRAY_PUSH(cells, const char *) = list_matches(rule, pool);
    APR_ARRAY_PUSH(cells, const char *) = rlr_keys[rule->key].word;
    for (int i = 0; i < regions->nelts; i++) {
        APR_ARRAY_PUSH(cells, const char *) = format_limit(
            rule, APR_ARRAY_IDX(regions, i, const char *), pool);
    }
    APR_ARRAY_PUSH(cells, const char *) = rule->category;
    APR_ARRAY_PUSH(cells, const char *) = rule->name;
}

static int measure_column(const apr_array_header_t *cells, int columns,
                          int column)
{
    size_t widest = 0;

    for (int i = column; i < cells->nelts; i += columns) {
        size_t width = strlen(APR_ARRAY_IDX(cells, i, const char *));

        widest = width > widest ? width : widest;
    }
    return (int)widest;
}

/* The line between the head and the rows. */
static void print_line(const apr_array_header_t *cells, int columns)
{
    for (int i = 0; i < columns; i++) {
        putchar('|');
        for (int left = measure_column(cells, columns, i) + 2; left > 0;
             left--) {
            putchar('-');
        }
    }
    puts("|");
}

static void print_cells(const apr_array_header_t *cells, int columns)
{
    for (int i = 0; i < cells->nelts; i++) {
        printf("| %-*s ", measure_column(cells, columns, i % columns),
               APR_ARRAY_IDX(cells, i, const char *));
        if (i % columns == columns - 1) {
            puts("|");
        }
        if (i == columns - 1) {
            print_line(cells, columns);
        }
    }
}

static void print_table(const apr_array_header_t *rules,
                        const apr_array_header_t *regions, apr_pool_t *pool)
{
    int columns = LEFT_COLUMNS + regions->nelts + 2;
    apr_array_header_t *cells = apr_array_make(
        pool, columns * (rules->nelts + 1), sizeof(const char *));

    add_head(cells, regions, pool);
    for (int i = 0; i < rules->nelts; i++) {
        add_row(cells, APR_ARRAY_IDX(rules, i, const rlr_rule_t *), regions,
                pool);
    }
    print_cells(cells, columns);
}

/* ---- Differences ---- */

static void print_difference(const apr_array_header_t *rules, const char *first,
                             const char *second, apr_pool_t *pool)
{
    int different = 0;

    printf("\n%s -> %s\n", first, second);
    for (int i = 0; i < rules->nelts; i++) {
        const rlr_rule_t *rule = APR_ARRAY_IDX(rules, i, const rlr_rule_t *);
        const char *before = format_limit(rule, first, pool);
        const char *after = format_limit(rule, second, pool);

        if (strcmp(before, after) != 0) {
            printf("  %-20s %12s -> %s\n", rule->name, before, after);
            different++;
        }
    }
    printf("  %d of %d rules differ\n", different, rules->nelts);
}

/* ---- Servers ---- */

static const char *name_engine(const rlr_config_t *config)
{
    static const char *const words[] = {"off", "dry run", "on"};

    return words[rlr_config_server_engine(config)];
}

static void print_servers(server_rec *main_server, apr_pool_t *pool)
{
    puts("");
    for (server_rec *server = main_server; server != NULL;
         server = server->next) {
        const rlr_config_t *config = rlr_config_get(server);

        printf("%s: region %s, engine %s\n",
               rlr_vhost_server_name(server, pool),
               config->region ? config->region : "(none)",
               config->vhost != NULL ? name_engine(config) : "off");
    }
}

void rlr_dump(apr_pool_t *pool, server_rec *main_server)
{
    const rlr_global_t *global = rlr_config_get(main_server)->global;
    const apr_array_header_t *regions = rlr_config_regions(global, pool);

    if (!ap_exists_config_define("DUMP_RATELIMIT")) {
        return;
    }
    print_table(global->rules, regions, pool);
    for (int i = 1; i < regions->nelts; i++) {
        print_difference(global->rules, APR_ARRAY_IDX(regions, 0, const char *),
                         APR_ARRAY_IDX(regions, i, const char *), pool);
    }
    print_servers(main_server, pool);
    rlr_dump_store(main_server, pool);
    fflush(stdout);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rules that each host has sent to the store, and compares them. */
#include "dump_store.h"

#include <stdio.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../store/publish.h"

/* ---- The rules of this host ---- */

static const char *format_rule(const rlr_rule_t *rule,
                               const apr_array_header_t *regions,
                               apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 8, sizeof(const char *));

    APR_ARRAY_PUSH(parts, const char *) = rule->name;
    for (int i = 0; i < rule->matches->nelts; i++) {
        const rlr_match_t *match = &APR_ARRAY_IDX(rule->matches, i,
                                                  rlr_match_t);

        APR_ARRAY_PUSH(parts, const char *) = match->source;
    }
    APR_ARRAY_PUSH(parts, const char *) = rlr_keys[rule->key].word;
    /* Bounded: a limit for each region. */
    for (int i = 0; i < regions->nelts; i++) {
        const char *region = APR_ARRAY_IDX(regions, i, const char *);
        const rlr_limit_t *limit = rlr_rule_limit(rule, region);

        if (limit != NULL) {
            APR_ARRAY_PUSH(parts, const char *) = apr_psprintf(
                pool, "%s=%u/%u", region, limit->count, limit->interval_sec);
        }
    }
    return apr_array_pstrcat(pool, parts, ' ');
}

const char *rlr_dump_store_rules(const rlr_global_t *global, apr_pool_t *pool)
{
    const apr_array_header_t *regions = rlr_config_regions(global, pool);
    apr_array_header_t *lines = apr_array_make(pool, global->rules->nelts,
                                               sizeof(const char *));
    char *text;

    /* Bounded: a line per rule of the configuration. */
    for (int i = 0; i < global->rules->nelts; i++) {
        APR_ARRAY_PUSH(lines, const char *) = format_rule(
            APR_ARRAY_IDX(global->rules, i, const rlr_rule_t *), regions, pool);
    }
    text = apr_array_pstrcat(pool, lines, '\n');
    if (strlen(text) >= RLR_STORE_RULES_BYTES) {
        text[RLR_STORE_RULES_BYTES - 1] = '\0';
    }
    return text;
}

/* ---- Differences ---- */

/* Returns the lines of the text, each as a key. */
static apr_hash_t *split_lines(const char *text, apr_pool_t *pool)
{
    apr_hash_t *lines = apr_hash_make(pool);
    char *rest = apr_pstrdup(pool, text);
    const char *line;
    char *state;

    for (line = apr_strtok(rest, "\n", &state); line != NULL;
         line = apr_strtok(NULL, "\n", &state)) {
        apr_hash_set(lines, line, APR_HASH_KEY_STRING, line);
    }
    return lines;
}

/* Prints the lines of the text that are not among the others; returns their
 * number. */
static int print_others(const char *where, const char *text,
                        const char *other_text, apr_pool_t *pool)
{
    apr_hash_t *others = split_lines(other_text, pool);
    char *rest = apr_pstrdup(pool, text);
    const char *line;
    char *state;
    int count = 0;

    for (line = apr_strtok(rest, "\n", &state); line != NULL;
         line = apr_strtok(NULL, "\n", &state)) {
        if (apr_hash_get(others, line, APR_HASH_KEY_STRING) == NULL) {
            printf("    %s: %s\n", where, line);
            count++;
        }
    }
    return count;
}

static void print_host(const rlr_store_rules_t *host, const char *rules,
                       apr_pool_t *pool)
{
    printf("  %s, %lu s ago: ", host->name,
           (unsigned long)(host->age_ms / 1000));
    if (strcmp(host->text, rules) == 0) {
        puts("the same rules");
        return;
    }
    puts("WARNING: other rules, and all hosts need the same");
    if (print_others("there", host->text, rules, pool)
            + print_others("here", rules, host->text, pool)
        == 0) {
        puts("    the order differs");
    }
}

void rlr_dump_store(const rlr_global_t *global, apr_pool_t *pool)
{
    const rlr_group_config_t *store = &global->store;
    const char *rules = rlr_dump_store_rules(global, pool);
    rlr_store_connection_t *connection;
    rlr_store_rules_t *host;
    const char *error;
    uint32_t known = 0;

    if (store->connection.address.count == 0) {
        return;
    }
    connection = rlr_connection_make(&store->connection, pool);
    host = apr_palloc(pool, sizeof(*host));
    error = rlr_connection_open(connection);
    printf("\nRateLimitStore, for %u hosts\n", store->hosts);
    for (uint32_t i = 0; error == NULL && i < store->hosts; i++) {
        error = rlr_publish_read(host, connection, (int)i, pool);
        if (error == NULL && host->text[0] != '\0') {
            print_host(host, rules, pool);
            known++;
        }
    }
    if (error != NULL) {
        printf("  WARNING: the store does not answer: %s\n", error);
    }
    else if (known < store->hosts) {
        printf("  %u of %u hosts have not sent their rules, which they do once "
               "a minute\n",
               store->hosts - known, store->hosts);
    }
}

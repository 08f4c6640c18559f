/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rules that each host has sent to the store, and compares them. */
#include "dump_store.h"

#include <stdio.h>
#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../store/publish.h"
#include "config.h"
#include "summary.h"

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

static void print_host(const rlr_message_rules_t *host, const char *rules,
                       const char *name, apr_pool_t *pool)
{
    printf("  %s, %lu s ago: ", host->name,
           (unsigned long)(host->age_ms / 1000));
    if (strcmp(host->text, rules) == 0) {
        puts("the same rules");
        return;
    }
    puts(strcmp(host->name, name) == 0
             ? "this host, which has other rules until it is reloaded"
             : "WARNING: other rules, and all hosts need the same");
    if (print_others("there", host->text, rules, pool)
            + print_others("here", rules, host->text, pool)
        == 0) {
        puts("    the order differs");
    }
}

void rlr_dump_store(server_rec *main_server, apr_pool_t *pool)
{
    const rlr_store_config_t *store = &rlr_config_get(main_server)
                                           ->global->store;
    const char *rules = rlr_summary_write(main_server, pool);
    const char *name = rlr_summary_name_host(pool);
    rlr_connection_t *connection;
    rlr_message_rules_t *host;
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
            print_host(host, rules, name, pool);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the configuration of counting as directives, without those that have
 * their default. */
#include "summary.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ap_listen.h>
#include <apr_strings.h>

#include "../rules/match.h"
#include "config.h"
#include "vhost.h"

#define ADD(parts) APR_ARRAY_PUSH(parts, const char *)

/* ---- Rules ---- */

static const char *format_rule(const rlr_rule_t *rule,
                               const apr_array_header_t *regions,
                               apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 8, sizeof(const char *));

    ADD(parts) = rule->name;
    for (int i = 0; i < rule->matches->nelts; i++) {
        ADD(parts) = APR_ARRAY_IDX(rule->matches, i, rlr_match_t).source;
    }
    ADD(parts) = rlr_keys[rule->key].word;
    /* Bounded: a limit for each region. */
    for (int i = 0; i < regions->nelts; i++) {
        const char *region = APR_ARRAY_IDX(regions, i, const char *);
        const rlr_limit_t *limit = rlr_rule_limit(rule, region);

        if (limit != NULL) {
            ADD(parts) = apr_psprintf(pool, "%s=%u/%u", region, limit->count,
                                      limit->interval_sec);
        }
    }
    return apr_array_pstrcat(pool, parts, ' ');
}

static void add_rules(apr_array_header_t *lines, const rlr_global_t *global,
                      apr_pool_t *pool)
{
    const apr_array_header_t *regions = rlr_config_regions(global, pool);

    /* Bounded: a line per rule of the configuration. */
    for (int i = 0; i < global->rules->nelts; i++) {
        ADD(lines) = format_rule(
            APR_ARRAY_IDX(global->rules, i, const rlr_rule_t *), regions, pool);
    }
}

static void add_global(apr_array_header_t *lines, const rlr_global_t *global,
                       apr_pool_t *pool)
{
    char key[RLR_DIGEST_TEXT_SIZE];

    /* Bounded: a line per override of the configuration. */
    for (int i = 0; i < global->overrides->nelts; i++) {
        const rlr_override_t *entry = &APR_ARRAY_IDX(global->overrides, i,
                                                     rlr_override_t);

        rlr_digest_format(key, &entry->key);
        ADD(lines) = apr_psprintf(pool, "RateLimitOverride %s %s %u/%u", key,
                                  entry->rule != NULL ? entry->rule : "*",
                                  entry->limit.count,
                                  entry->limit.interval_sec);
    }
    if (global->new_identities.count > 0) {
        ADD(lines) = apr_psprintf(pool, "RateLimitNewIdentities %u/%u",
                                  global->new_identities.count,
                                  global->new_identities.interval_sec);
    }
}

/* ---- Servers ---- */

static void add_engines(apr_array_header_t *parts, const rlr_config_t *config,
                        apr_pool_t *pool)
{
    static const char *const words[] = {"Off", "DryRun", "On"};
    rlr_engine_t engine = rlr_config_server_engine(config);

    if (engine != RLR_ENGINE_ON) {
        ADD(parts) = apr_psprintf(pool, "RateLimitEngine %s", words[engine]);
    }
    /* Bounded: as many as the server has. */
    for (int i = 0; i < config->rule_engines->nelts; i++) {
        const rlr_rule_engine_t *entry = &APR_ARRAY_IDX(config->rule_engines, i,
                                                        rlr_rule_engine_t);

        ADD(parts) = apr_psprintf(pool, "RateLimitEngine %s %s",
                                  words[entry->engine], entry->rule);
    }
}

/* How paths are read before they are matched. */
static void add_paths(apr_array_header_t *parts, const rlr_vhost_t *vhost,
                      apr_pool_t *pool)
{
    if (vhost->strip_prefix != NULL) {
        ADD(parts) = apr_pstrcat(pool, "RateLimitStripPrefix ",
                                 vhost->strip_prefix, NULL);
    }
    if (vhost->head_as_get) {
        ADD(parts) = "RateLimitHeadAsGet On";
    }
    if ((vhost->slashes & RLR_SLASH_DECODE) != 0) {
        ADD(parts) = "AllowEncodedSlashes On";
    }
    if ((vhost->slashes & RLR_SLASH_KEEP) != 0) {
        ADD(parts) = "MergeSlashes Off";
    }
}

/* Whom requests count for. */
static void add_identities(apr_array_header_t *parts,
                           const rlr_config_t *config, apr_pool_t *pool)
{
    const rlr_vhost_t *vhost = config->vhost;

    if (vhost->scope_length > 1) {
        ADD(parts) = apr_psprintf(pool, "RateLimitScope Host (%.*s)",
                                  (int)vhost->scope_length - 1,
                                  vhost->scope + 1);
    }
    if (vhost->ipv6_prefix != RLR_DEFAULT_IPV6_PREFIX) {
        ADD(parts) = apr_psprintf(pool, "RateLimitIPv6Prefix %d",
                                  vhost->ipv6_prefix);
    }
    if (config->key_pattern_text != NULL) {
        ADD(parts) = apr_pstrcat(pool, "RateLimitKeyPattern ",
                                 config->key_pattern_text, NULL);
    }
    if (config->exempt_texts->nelts > 0) {
        ADD(parts) = apr_pstrcat(
            pool, "RateLimitExempt ",
            apr_array_pstrcat(pool, config->exempt_texts, ' '), NULL);
    }
}

static const char *format_server(const rlr_config_t *config, apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, 8, sizeof(const char *));

    ADD(parts) = apr_pstrcat(pool, "RateLimitRegion ", config->vhost->region,
                             NULL);
    add_engines(parts, config, pool);
    add_paths(parts, config->vhost, pool);
    add_identities(parts, config, pool);
    return apr_array_pstrcat(pool, parts, ' ');
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A line for all servers with the same one, without their names: those of the
 * hosts may differ. */
static void add_servers(apr_array_header_t *lines, server_rec *server,
                        apr_pool_t *pool)
{
    apr_array_header_t *all = apr_array_make(pool, 4, sizeof(const char *));
    const char *last = "";

    for (; server != NULL; server = server->next) {
        const rlr_config_t *config = rlr_config_get(server);

        if (config->vhost != NULL) {
            ADD(all) = format_server(config, pool);
        }
    }
    qsort(all->elts, (size_t)all->nelts, sizeof(const char *), compare);
    for (int i = 0; i < all->nelts; i++) {
        const char *line = APR_ARRAY_IDX(all, i, const char *);

        if (strcmp(line, last) != 0) {
            ADD(lines) = line;
            last = line;
        }
    }
}

const char *rlr_summary_write(server_rec *main_server, apr_pool_t *pool)
{
    const rlr_global_t *global = rlr_config_get(main_server)->global;
    apr_array_header_t *lines = apr_array_make(pool, global->rules->nelts,
                                               sizeof(const char *));
    char *text;

    add_rules(lines, global, pool);
    add_global(lines, global, pool);
    add_servers(lines, main_server, pool);
    text = apr_array_pstrcat(pool, lines, '\n');
    if (strlen(text) >= RLR_MESSAGE_RULES_BYTES) {
        text[RLR_MESSAGE_RULES_BYTES - 1] = '\0';
    }
    return text;
}

/* ---- The host ---- */

/* The address with the lowest port, or NULL: httpd changes the order. */
static const apr_sockaddr_t *find_address(void)
{
    const apr_sockaddr_t *found = NULL;

    for (const ap_listen_rec *one = ap_listeners; one != NULL;
         one = one->next) {
        if (found == NULL || one->bind_addr->port < found->port) {
            found = one->bind_addr;
        }
    }
    return found;
}

const char *rlr_summary_name_host(apr_pool_t *pool)
{
    char name[RLR_MESSAGE_NAME_BYTES] = "";
    const apr_sockaddr_t *address = find_address();

    if (gethostname(name, sizeof(name) - 1) != 0) {
        name[0] = '\0';
    }
    if (address == NULL) {
        return apr_pstrdup(pool, name);
    }
    /* Without an address if all are listened to. */
    return address->hostname == NULL
        ? apr_psprintf(pool, "%.50s:%u", name, address->port)
        : apr_psprintf(pool, "%.30s/%.25s:%u", name, address->hostname,
                       address->port);
}

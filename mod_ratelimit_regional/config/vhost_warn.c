/* SPDX-License-Identifier: Apache-2.0 */
/* What is legal in a configuration and probably not meant; see site.h. */
#include "vhost.h"

#include <string.h>

#include <apr_strings.h>

#include "config.h"
#include "../private.h"

#define NAMED_SERVERS 5

/* The rules of a site as rlr_rule_find_cover takes them. */
static const rlr_rule_t *const *list_rules(const rlr_site_t *site,
                                           apr_pool_t *pool)
{
    apr_array_header_t *rules = apr_array_make(pool, site->rules->nelts,
                                               sizeof(const rlr_rule_t *));

    for (int i = 0; i < site->rules->nelts; i++) {
        APR_ARRAY_PUSH(rules, const rlr_rule_t *) =
            APR_ARRAY_IDX(site->rules, i, rlr_site_rule_t).rule;
    }
    return (const rlr_rule_t *const *)rules->elts;
}

/* Notes that a text was said; false if it was said before. */
static bool is_news(apr_hash_t *said, const char *text, apr_pool_t *pool)
{
    if (apr_hash_get(said, text, APR_HASH_KEY_STRING) != NULL) {
        return false;
    }
    apr_hash_set(said, apr_pstrdup(pool, text), APR_HASH_KEY_STRING, "");
    return true;
}

/* The rules before rules[index] that leave it nothing, by name; empty when it
 * can match. Patterns that never decide are logged once. */
static apr_array_header_t *find_covers(const rlr_site_t *site,
                                       const rlr_rule_t *const *rules,
                                       int index, server_rec *server,
                                       apr_hash_t *said, apr_pool_t *pool)
{
    const rlr_rule_t *rule = rules[index];
    apr_array_header_t *covers = apr_array_make(pool, 4, sizeof(const char *));

    /* Bounded: a name for each match of the configuration, at the start. */
    for (int i = 0; i < rule->matches->nelts; i++) {
        const rlr_match_t *match = &APR_ARRAY_IDX(rule->matches, i,
                                                  rlr_match_t);
        const rlr_rule_t *cover = rlr_rule_find_cover(rules, index, rule, i,
                                                      site->head_as_get, pool);

        if (cover == NULL) {
            continue;
        }
        APR_ARRAY_PUSH(covers, const char *) = cover->name;
        if (rule->matches->nelts > 1
            && is_news(
                said,
                apr_psprintf(pool, "%s/%s/%d", site->region, rule->name, i),
                pool)) {
            ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                         RLR_LOGNO(0105) "%s: RateLimitRule %s: the match '%s' "
                                         "can never decide in region %s: all "
                                         "of its requests are taken by %s",
                         rule->where, rule->name, match->source, site->region,
                         cover->name);
        }
    }
    if (covers->nelts < rule->matches->nelts) {
        apr_array_clear(covers);
    }
    return covers;
}

static void check_site(const rlr_site_t *site, server_rec *server,
                       apr_hash_t *said, apr_pool_t *pool)
{
    const rlr_rule_t *const *rules = list_rules(site, pool);

    /* Bounded: a name for each rule of the configuration, at the start. */
    for (int i = 1; i < site->rules->nelts; i++) {
        const apr_array_header_t *covers = find_covers(site, rules, i, server,
                                                       said, pool);

        if (covers->nelts > 0
            && is_news(
                said, apr_psprintf(pool, "%s/%s", site->region, rules[i]->name),
                pool)) {
            ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                         RLR_LOGNO(0104) "%s: RateLimitRule %s can never match "
                                         "in region %s: all of its requests "
                                         "are taken before by %s",
                         rules[i]->where, rules[i]->name, site->region,
                         apr_array_pstrcat(pool, covers, ' '));
        }
    }
}

const char *rlr_site_server_name(const server_rec *server, apr_pool_t *pool)
{
    const char *host = server->server_hostname ? server->server_hostname
                                               : "(main server)";

    return server->port == 0 ? host
                             : apr_psprintf(pool, "%s:%u", host, server->port);
}

/* Servers that limit nothing although nobody said Off. */
static void warn_of_open_servers(server_rec *main_server, apr_pool_t *pool)
{
    apr_array_header_t *names = apr_array_make(pool, 4, sizeof(const char *));
    int count = 0;

    for (server_rec *server = main_server; server != NULL;
         server = server->next) {
        const rlr_config_t *config = rlr_config_get(server);

        if (config->region == NULL
            && rlr_config_server_engine(config) != RLR_ENGINE_OFF
            && ++count <= NAMED_SERVERS) {
            APR_ARRAY_PUSH(names, const char *) = rlr_site_server_name(server,
                                                                       pool);
        }
    }
    if (count > 0) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, main_server,
                     RLR_LOGNO(0106) "%d servers have no RateLimitRegion and "
                                     "limit nothing: %s%s; if that is meant, "
                                     "say RateLimitEngine Off there",
                     count, apr_array_pstrcat(pool, names, ' '),
                     count > NAMED_SERVERS ? " ..." : "");
    }
}

void rlr_site_warn(server_rec *main_server, apr_pool_t *pool)
{
    apr_hash_t *said = apr_hash_make(pool);

    if (rlr_config_get(main_server)->global->rules->nelts == 0) {
        return;
    }
    /* Bounded: a name for each server of the configuration, at the start. */
    for (server_rec *server = main_server; server != NULL;
         server = server->next) {
        const rlr_site_t *site = rlr_config_get(server)->site;

        /* Servers share rules. */
        if (site != NULL
            && is_news(said,
                       apr_psprintf(pool, "%pp %d", (void *)site->rules,
                                    site->head_as_get),
                       pool)) {
            check_site(site, server, said, pool);
        }
    }
    warn_of_open_servers(main_server, pool);
}

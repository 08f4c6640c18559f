/* SPDX-License-Identifier: Apache-2.0 */
/* Detects rules that can never match, rules without a share of the host and
 * servers that limit nothing. */
#include "vhost_warn.h"

#include <string.h>

#include <apr_strings.h>

#include "../protocol/period.h"
#include "../private.h"
#include "config.h"
#include "vhost.h"

/* Servers that a warning names; it counts the others. */
#define NAMED_SERVERS 5

/* Records the text; true if it had not been recorded before. */
static bool is_first(apr_hash_t *seen, const char *text, apr_pool_t *pool)
{
    if (apr_hash_get(seen, text, APR_HASH_KEY_STRING) != NULL) {
        return false;
    }
    apr_hash_set(seen, apr_pstrdup(pool, text), APR_HASH_KEY_STRING, "");
    return true;
}

/* The names of the earlier rules that together cover rules[index]; empty if it
 * can match. Logs patterns that never decide, once. */
static apr_array_header_t *find_covers(const rlr_vhost_t *vhost,
                                       const rlr_rule_t *const *rules,
                                       int index, server_rec *server,
                                       apr_hash_t *seen, apr_pool_t *pool)
{
    const rlr_rule_t *rule = rules[index];
    apr_array_header_t *covers = apr_array_make(pool, 4, sizeof(const char *));

    /* Bounded: a name per match of the configuration, at start. */
    for (int i = 0; i < rule->matches->nelts; i++) {
        const rlr_match_t *match = &APR_ARRAY_IDX(rule->matches, i,
                                                  rlr_match_t);
        const rlr_rule_t *cover = rlr_rule_find_cover(rules, index, rule, i,
                                                      vhost->head_as_get, pool);

        if (cover == NULL) {
            continue;
        }
        APR_ARRAY_PUSH(covers, const char *) = cover->name;
        if (rule->matches->nelts > 1
            && is_first(
                seen,
                apr_psprintf(pool, "%s/%s/%d", vhost->region, rule->name, i),
                pool)) {
            ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                         RLR_LOGNO(0105) "%s: RateLimitRule %s: the match '%s' "
                                         "can never decide in region %s: all "
                                         "of its requests match %s first",
                         rule->where, rule->name, match->source, vhost->region,
                         cover->name);
        }
    }
    if (covers->nelts < rule->matches->nelts) {
        apr_array_clear(covers);
    }
    return covers;
}

/* Warns of the limits of which a host admits nothing while the store is away;
 * each once. */
static void warn_of_shares(const rlr_vhost_t *vhost,
                           const rlr_store_config_t *store, server_rec *server,
                           apr_hash_t *seen, apr_pool_t *pool)
{
    /* Bounded: a name per rule of the configuration, at start. */
    for (int i = 0; i < vhost->rules->nelts; i++) {
        const rlr_vhost_rule_t *entry = &APR_ARRAY_IDX(vhost->rules, i,
                                                       rlr_vhost_rule_t);
        const rlr_rule_t *rule = entry->rule;
        uint32_t interval_sec = entry->quota.limit.interval_sec;
        bool has_share = rlr_period_has_share(interval_sec, store->share_ms);

        if (has_share) {
            interval_sec = entry->longest_sec;
        }
        if (rlr_period_has_share(interval_sec, store->share_ms)
            || !is_first(
                seen,
                apr_psprintf(pool, "share %s/%s", vhost->region, rule->name),
                pool)) {
            continue;
        }
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     RLR_LOGNO(0125) "%s: RateLimitRule %s%s: a host that is "
                                     "cut off from the store never admits its "
                                     "share in region %s: it waits for longer "
                                     "than the interval, %u s, and "
                                     "RateLimitStoreShareTime is %u s",
                     rule->where, rule->name,
                     has_share ? " with a RateLimitOverride" : "",
                     vhost->region, interval_sec, store->share_ms / 1000);
    }
}

static void check_vhost(const rlr_vhost_t *vhost, server_rec *server,
                        apr_hash_t *seen, apr_pool_t *pool)
{
    const rlr_rule_t *const *rules = rlr_vhost_list_rules(vhost, pool);

    /* Bounded: a name per rule of the configuration, at start. */
    for (int i = 1; i < vhost->rules->nelts; i++) {
        const apr_array_header_t *covers = find_covers(vhost, rules, i, server,
                                                       seen, pool);

        if (covers->nelts > 0
            && is_first(
                seen,
                apr_psprintf(pool, "%s/%s", vhost->region, rules[i]->name),
                pool)) {
            ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                         RLR_LOGNO(0104) "%s: RateLimitRule %s can never match "
                                         "in region %s: all of its requests "
                                         "match %s first",
                         rules[i]->where, rules[i]->name, vhost->region,
                         apr_array_pstrcat(pool, covers, ' '));
        }
    }
}

/* Warns of servers without a region whose engine is not Off. */
static void warn_of_unlimited_servers(server_rec *main_server, apr_pool_t *pool)
{
    apr_array_header_t *names = apr_array_make(pool, 4, sizeof(const char *));
    int count = 0;

    for (server_rec *server = main_server; server != NULL;
         server = server->next) {
        const rlr_config_t *config = rlr_config_get(server);

        if (config->region == NULL
            && rlr_config_server_engine(config) != RLR_ENGINE_OFF
            && ++count <= NAMED_SERVERS) {
            APR_ARRAY_PUSH(names, const char *) = rlr_vhost_server_name(server,
                                                                        pool);
        }
    }
    if (count > 0) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, main_server,
                     RLR_LOGNO(0106) "%d server%s without RateLimitRegion: "
                                     "nothing is limited at %s%s; if intended, "
                                     "set RateLimitEngine Off there",
                     count, count == 1 ? "" : "s",
                     apr_array_pstrcat(pool, names, ' '),
                     count > NAMED_SERVERS ? " ..." : "");
    }
}

void rlr_vhost_warn(server_rec *main_server, apr_pool_t *pool)
{
    apr_hash_t *seen = apr_hash_make(pool);
    const rlr_store_config_t *store = &rlr_config_get(main_server)
                                           ->global->store;

    if (rlr_config_get(main_server)->global->rules->nelts == 0) {
        return;
    }
    /* Bounded: a name per server of the configuration, at start. */
    for (server_rec *server = main_server; server != NULL;
         server = server->next) {
        const rlr_vhost_t *vhost = rlr_config_get(server)->vhost;

        /* Servers with the same rules are checked once. */
        if (vhost != NULL
            && is_first(seen,
                        apr_psprintf(pool, "%pp %d", (void *)vhost->rules,
                                     vhost->head_as_get),
                        pool)) {
            check_vhost(vhost, server, seen, pool);
            if (store->connection.address.count > 0
                && store->failure == RLR_FAILURE_LOCAL) {
                warn_of_shares(vhost, store, server, seen, pool);
            }
        }
    }
    warn_of_unlimited_servers(main_server, pool);
}

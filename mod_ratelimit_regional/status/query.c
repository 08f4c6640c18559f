/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes queries and resets. Parameters:
 *
 *   action         ask (the default with a path) or reset (POST only)
 *   region         default: that of this virtual host
 *   method, path   of the queried request; method defaults to GET
 *   api-key, user  sha256:HASH; in a POST also in clear, because forms are not
 *                  logged as URLs are
 *   ip             default of ask: the client's own address
 *   rule           of a reset; default: all rules with that key
 */
#include "query.h"

#include <string.h>

#include <apr_strings.h>
#include <http_core.h>
#include <http_main.h>

#include "../config/config.h"
#include "../config/vhosts.h"
#include "../private.h"

static const char *find(const apr_table_t *form, const char *name)
{
    const char *value = apr_table_get(form, name);

    return value != NULL && *value != '\0' ? value : NULL;
}

static void refuse(rlr_query_t *query, request_rec *r, const char *name,
                   const char *expected, const char *given)
{
    query->problem = apr_psprintf(
        r->pool, "%s: expected %s, got %s", name, expected,
        given ? apr_psprintf(r->pool, "'%s'", given) : "none");
}

static bool read_vhost(rlr_query_t *query, request_rec *r,
                       const apr_table_t *form)
{
    const char *region = find(form, "region");
    const rlr_vhost_t *own = rlr_config_get(r->server)->vhost;

    query->vhost = own != NULL
            && (region == NULL || strcmp(region, own->region) == 0)
        ? own
        : rlr_vhosts_find(ap_server_conf, region);
    if (query->vhost == NULL) {
        refuse(query, r, "region", "a region that this httpd enforces", region);
    }
    return query->vhost != NULL;
}

/* Reads a digest, or (POST only) the value itself. */
static bool read_credential(rlr_credential_t *credential, rlr_query_t *query,
                            request_rec *r, const char *name, const char *text)
{
    if (text == NULL) {
        return true;
    }
    if (rlr_digest_parse(&credential->digest, text)) {
        credential->present = true;
        credential->has_digest = true;
        return true;
    }
    if (r->method_number == M_POST && credential->present) {
        return true;
    }
    /* Without the value, which may be an API key. */
    query->problem = apr_psprintf(
        r->pool,
        r->method_number == M_POST
            ? "%s: expected sha256: and 32 hex digits, or a valid header "
              "value: printable ASCII without a comma"
            : "%s: expected sha256: and 32 hex digits (URLs are logged; a "
              "POST may have the value itself)",
        name);
    return false;
}

static bool read_address(rlr_query_t *query, request_rec *r, const char *text)
{
    if (rlr_subject_parse_address(&query->subject, query->vhost, text)) {
        return true;
    }
    refuse(query, r, "ip", "an IPv4 or IPv6 address", text);
    return false;
}

static bool read_subject(rlr_query_t *query, request_rec *r,
                         const apr_table_t *form, const char *address)
{
    for (int key = 0; key < RLR_KEYS; key++) {
        const char *field = rlr_keys[key].field;
        const char *text = find(form, field);

        if (rlr_keys[key].header == NULL) {
            continue;
        }
        rlr_subject_set_credential(&query->subject, query->vhost,
                                   (rlr_key_t)key, text);
        if (!read_credential(&query->subject.credentials[key], query, r, field,
                             text)) {
            return false;
        }
    }
    return address == NULL || read_address(query, r, address);
}

/* ---- Ask ---- */

static bool read_target(rlr_query_t *query, request_rec *r,
                        const apr_table_t *form)
{
    const char *method = find(form, "method");
    const char *path = find(form, "path");

    if (path == NULL || (path[0] != '/' && strcmp(path, "*") != 0)) {
        refuse(query, r, "path", "a path that begins with /", path);
        return false;
    }
    path = apr_pstrmemdup(r->pool, path, strcspn(path, "?"));
    rlr_subject_set_target(&query->subject, query->vhost,
                           method ? method : "GET", path, r->pool);
    return true;
}

/* Converts the address for RateLimitExempt. It has been parsed, so that no
 * name is resolved. */
static apr_sockaddr_t *make_sockaddr(request_rec *r, const char *address)
{
    apr_sockaddr_t *sockaddr = NULL;

    apr_sockaddr_info_get(&sockaddr, address, APR_UNSPEC, 0, 0, r->pool);
    return sockaddr;
}

static void ask(rlr_query_t *query, request_rec *r, const apr_table_t *form)
{
    const char *given = find(form, "ip");
    const char *address = given ? given : r->useragent_ip;
    rlr_decision_t *decision = apr_palloc(r->pool, sizeof(*decision));

    if (!read_subject(query, r, form, address)
        || !read_target(query, r, form)) {
        return;
    }
    rlr_decide_peek(decision, query->vhost, &query->subject,
                    make_sockaddr(r, address));
    query->decision = decision;
    if (decision->rule != NULL) {
        query->identity = rlr_subject_describe(
            &query->subject, query->vhost, decision->rule->rule->key, r->pool);
    }
}

/* ---- Reset ---- */

/* Whether exactly the parts of the key are given. */
static bool is_key(const rlr_query_t *query, int key, bool has_address)
{
    bool same = rlr_keys[key].by_address == has_address;

    for (int i = 0; same && i < RLR_KEYS; i++) {
        same = rlr_keys[i].header == NULL
            || query->subject.credentials[i].present
                == (strcmp(rlr_keys[i].field, rlr_keys[key].field) == 0);
    }
    return same;
}

/* "api-key, or user and ip, or ip" */
static const char *list_fields(apr_pool_t *pool)
{
    const char *list = "";

    /* Bounded: the rows of keys.def. */
    for (int i = 0; i < RLR_KEYS; i++) {
        bool with_address = rlr_keys[i].header != NULL
            && rlr_keys[i].by_address;

        list = apr_pstrcat(pool, list, i > 0 ? ", or " : "", rlr_keys[i].field,
                           with_address ? " and ip" : "", NULL);
    }
    return list;
}

static bool find_key(rlr_key_t *key, rlr_query_t *query, request_rec *r,
                     bool has_address)
{
    for (int i = 0; i < RLR_KEYS; i++) {
        if (is_key(query, i, has_address)) {
            *key = (rlr_key_t)i;
            return true;
        }
    }
    query->problem = apr_psprintf(r->pool, "reset: expected %s",
                                  list_fields(r->pool));
    return false;
}

static bool check_rule(rlr_query_t *query, request_rec *r, const char *name,
                       rlr_key_t key)
{
    const rlr_rule_t *rule = name == NULL
        ? NULL
        : rlr_config_find_rule(rlr_config_get(ap_server_conf)->global, name);

    if (name == NULL || (rule != NULL && rule->key == key)) {
        return true;
    }
    refuse(query, r, "rule",
           apr_psprintf(r->pool, "a rule with key=%s", rlr_keys[key].word),
           name);
    return false;
}

static void reset(rlr_query_t *query, request_rec *r, const apr_table_t *form)
{
    const char *rule = find(form, "rule");
    const char *address = find(form, "ip");
    rlr_key_t key;

    if (r->method_number != M_POST) {
        query->problem = "reset: expected a POST";
        return;
    }
    if (!read_subject(query, r, form, address)
        || !find_key(&key, query, r, address != NULL)
        || !check_rule(query, r, rule, key)) {
        return;
    }
    query->identity = rlr_subject_describe(&query->subject, query->vhost, key,
                                           r->pool);
    query->reset = rlr_decide_reset(query->vhost, &query->subject, key, rule);
    ap_log_rerror(APLOG_MARK, APLOG_NOTICE, 0, r,
                  RLR_LOGNO(0203) "reset: %s, rule %s, region %s, %d counters",
                  query->identity, rule ? rule : "(all)", query->vhost->region,
                  query->reset);
}

void rlr_query_run(rlr_query_t *query, request_rec *r, const apr_table_t *form)
{
    const char *action = find(form, "action");

    memset(query, 0, sizeof(*query));
    query->reset = -1;
    if (action == NULL) {
        action = find(form, "path") != NULL ? "ask" : "show";
    }
    if (strcmp(action, "show") == 0 || !read_vhost(query, r, form)) {
        return;
    }
    if (strcmp(action, "ask") == 0) {
        ask(query, r, form);
    }
    else if (strcmp(action, "reset") == 0) {
        reset(query, r, form);
    }
    else {
        refuse(query, r, "action", "ask or reset", action);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions and resets; see status.h. Parameters:
 *
 *   action   ask (default when there is a path) or reset (POST only)
 *   region   default: this virtual host's
 *   method, path          of the request in question; method default GET
 *   api-key, user         sha256:HASH; in a POST also in clear, because a form
 *                         does not end up in logs as a URL does
 *   ip                    default in a question: the asking client's
 *   rule                  of a reset; default: all rules with that key
 */
#include "status.h"

#include <string.h>

#include <apr_strings.h>
#include <http_core.h>
#include <http_main.h>

#include "../config/config.h"
#include "../private.h"

static const char *find(const apr_table_t *form, const char *name)
{
    const char *value = apr_table_get(form, name);

    return value != NULL && *value != '\0' ? value : NULL;
}

static void refuse(rlr_status_answer_t *answer, request_rec *r,
                   const char *name, const char *expected, const char *given)
{
    answer->problem = apr_psprintf(
        r->pool, "%s: expected %s, got %s", name, expected,
        given ? apr_psprintf(r->pool, "'%s'", given) : "none");
}

static bool read_site(rlr_status_answer_t *answer, request_rec *r,
                      const apr_table_t *form)
{
    const char *region = find(form, "region");
    const rlr_site_t *own = rlr_config_get(r->server)->site;

    answer->site = own != NULL
            && (region == NULL || strcmp(region, own->region) == 0)
        ? own
        : rlr_site_find(ap_server_conf, region);
    if (answer->site == NULL) {
        refuse(answer, r, "region", "a region that this httpd enforces",
               region);
    }
    return answer->site != NULL;
}

/* The digest, or (POST only) the text that it is made of. */
static bool read_credential(rlr_credential_t *credential,
                            rlr_status_answer_t *answer, request_rec *r,
                            const char *name, const char *text)
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
    /* What was given is not repeated: it may be a key. */
    answer->problem = apr_psprintf(
        r->pool,
        r->method_number == M_POST
            ? "%s: expected sha256: and 32 hex digits, or what a client may "
              "send: visible ASCII without a comma"
            : "%s: expected sha256: and 32 hex digits (a URL ends up in logs; "
              "a POST may have the text itself)",
        name);
    return false;
}

static bool read_address(rlr_status_answer_t *answer, request_rec *r,
                         const char *text)
{
    if (rlr_subject_parse_address(&answer->subject, answer->site, text)) {
        return true;
    }
    refuse(answer, r, "ip", "an IPv4 or IPv6 address", text);
    return false;
}

static bool read_who(rlr_status_answer_t *answer, request_rec *r,
                     const apr_table_t *form, const char *address)
{
    rlr_subject_t *subject = &answer->subject;
    const char *api_key = find(form, "api-key");
    const char *user = find(form, "user");

    rlr_subject_set_api_key(subject, answer->site, api_key);
    rlr_subject_set_user(subject, user);
    return read_credential(&subject->api_key, answer, r, "api-key", api_key)
        && read_credential(&subject->user, answer, r, "user", user)
        && (address == NULL || read_address(answer, r, address));
}

/* ---- Which rule would this request hit, and what is left? ---- */

static bool read_target(rlr_status_answer_t *answer, request_rec *r,
                        const apr_table_t *form)
{
    const char *method = find(form, "method");
    const char *path = find(form, "path");

    if (path == NULL || (path[0] != '/' && strcmp(path, "*") != 0)) {
        refuse(answer, r, "path", "a path that begins with /", path);
        return false;
    }
    path = apr_pstrmemdup(r->pool, path, strcspn(path, "?"));
    rlr_subject_set_target(&answer->subject, answer->site,
                           method ? method : "GET", path, r->pool);
    return true;
}

/* The address as RateLimitExempt is compared with it; it has been read, so
 * that no name is looked up. */
static apr_sockaddr_t *make_sockaddr(request_rec *r, const char *address)
{
    apr_sockaddr_t *sockaddr = NULL;

    apr_sockaddr_info_get(&sockaddr, address, APR_UNSPEC, 0, 0, r->pool);
    return sockaddr;
}

static void ask(rlr_status_answer_t *answer, request_rec *r,
                const apr_table_t *form)
{
    const char *given = find(form, "ip");
    const char *address = given ? given : r->useragent_ip;
    rlr_verdict_t *verdict = apr_palloc(r->pool, sizeof(*verdict));

    if (!read_who(answer, r, form, address) || !read_target(answer, r, form)) {
        return;
    }
    rlr_limit_ask(verdict, answer->site, &answer->subject,
                  make_sockaddr(r, address));
    answer->verdict = verdict;
    if (verdict->rule != NULL) {
        answer->identity = rlr_subject_describe(
            &answer->subject, answer->site, verdict->rule->rule->key, r->pool);
    }
}

/* ---- Reset ---- */

static bool find_key(rlr_key_t *key, rlr_status_answer_t *answer,
                     request_rec *r, bool has_address)
{
    const rlr_subject_t *subject = &answer->subject;
    int credentials = subject->api_key.present + subject->user.present;

    *key = subject->api_key.present ? RLR_KEY_API
        : subject->user.present     ? RLR_KEY_USER
                                    : RLR_KEY_IP;
    if (credentials > 1 || has_address == subject->api_key.present) {
        answer->problem = "reset: expected api-key, or user and ip, or ip "
                          "alone";
        return false;
    }
    return true;
}

static bool check_rule(rlr_status_answer_t *answer, request_rec *r,
                       const char *name, rlr_key_t key)
{
    const rlr_rule_t *rule = name == NULL
        ? NULL
        : rlr_config_find_rule(rlr_config_get(ap_server_conf)->global, name);

    if (name == NULL || (rule != NULL && rule->key == key)) {
        return true;
    }
    refuse(answer, r, "rule",
           apr_psprintf(r->pool, "a rule with key=%s", rlr_rule_key_name(key)),
           name);
    return false;
}

static void reset(rlr_status_answer_t *answer, request_rec *r,
                  const apr_table_t *form)
{
    const char *rule = find(form, "rule");
    const char *address = find(form, "ip");
    rlr_key_t key;

    if (r->method_number != M_POST) {
        answer->problem = "reset: expected a POST";
        return;
    }
    if (!read_who(answer, r, form, address)
        || !find_key(&key, answer, r, address != NULL)
        || !check_rule(answer, r, rule, key)) {
        return;
    }
    answer->identity = rlr_subject_describe(&answer->subject, answer->site, key,
                                            r->pool);
    answer->reset = rlr_limit_reset(answer->site, &answer->subject, key, rule);
    ap_log_rerror(APLOG_MARK, APLOG_NOTICE, 0, r,
                  RLR_LOGNO(0203) "reset: %s, rule %s, region %s, %d counters",
                  answer->identity, rule ? rule : "(all)", answer->site->region,
                  answer->reset);
}

void rlr_status_ask(rlr_status_answer_t *answer, request_rec *r,
                    const apr_table_t *form)
{
    const char *action = find(form, "action");

    memset(answer, 0, sizeof(*answer));
    answer->reset = -1;
    if (action == NULL) {
        action = find(form, "path") != NULL ? "ask" : "show";
    }
    if (strcmp(action, "show") == 0 || !read_site(answer, r, form)) {
        return;
    }
    if (strcmp(action, "ask") == 0) {
        ask(answer, r, form);
    }
    else if (strcmp(action, "reset") == 0) {
        reset(answer, r, form);
    }
    else {
        refuse(answer, r, "action", "ask or reset", action);
    }
}

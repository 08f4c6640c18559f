/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides about one request; see limit.h. The first rule in the table's order
 * that is for the request and whose key it carries decides, and exactly one
 * counter is charged.
 */
#include "decide.h"

#include <string.h>

#include <apr_network_io.h>
#include <apr_strings.h>

#include "new_keys.h"
#include "../private.h"

/* Of each warning, and as good as none, to count what is not logged. */
static const rlr_limit_t warning_limit = {1, 60};
static const rlr_limit_t minute_limit = {1000000, 60};

const char *rlr_outcome_word(rlr_outcome_t outcome)
{
    static const char *const words[] = {"none", "exempt", "admitted", "refused",
                                        "would-refuse"};

    return words[outcome];
}

unsigned rlr_limit_seconds(uint32_t ms)
{
    return (ms + 999) / 1000;
}

/* ---- Which rule ---- */

static const rlr_site_rule_t *find_rule(const rlr_site_t *site,
                                        const rlr_subject_t *subject)
{
    const rlr_candidate_t *candidate = rlr_lookup_find(site->lookup,
                                                       &subject->target);

    for (; candidate->match != NULL; candidate++) {
        const rlr_site_rule_t *rule = &APR_ARRAY_IDX(
            site->rules, candidate->rule, rlr_site_rule_t);

        if (rlr_subject_has(subject, rule->rule->key)
            && rlr_match_test(candidate->match, &subject->target)) {
            return rule;
        }
    }
    return NULL;
}

/* The key's own limit, or the rule's. */
static const rlr_quota_t *find_quota(const rlr_site_rule_t *rule,
                                     rlr_subject_t *subject)
{
    rlr_credential_t *credential = rule->rule->key == RLR_KEY_API
        ? &subject->api_key
        : &subject->user;
    const rlr_quota_t *own;

    if (rule->overrides == NULL) {
        return &rule->quota;
    }
    own = apr_hash_get(rule->overrides, rlr_credential_digest(credential),
                       RLR_DIGEST_BYTES);
    return own != NULL ? own : &rule->quota;
}

/* ---- Who is not limited ---- */

static bool has_exempt_address(const rlr_site_t *site, apr_sockaddr_t *address)
{
    const apr_array_header_t *networks = site->exempt_networks;

    for (int i = 0; i < networks->nelts && address != NULL; i++) {
        if (apr_ipsubnet_test(APR_ARRAY_IDX(networks, i, apr_ipsubnet_t *),
                              address)) {
            return true;
        }
    }
    return false;
}

static bool has_exempt_key(const rlr_site_t *site, rlr_subject_t *subject)
{
    if (!subject->api_key.present) {
        return false;
    }
    for (int i = 0; i < site->exempt_keys->nelts; i++) {
        if (rlr_digest_equal(&APR_ARRAY_IDX(site->exempt_keys, i, rlr_digest_t),
                             rlr_credential_digest(&subject->api_key))) {
            return true;
        }
    }
    return false;
}

/* ---- The counters ---- */

/* A request to the table; identity is where its bytes go. */
static rlr_table_request_t make_request(
    unsigned char identity[RLR_IDENTITY_MAX], const rlr_site_t *site,
    rlr_subject_t *subject, rlr_key_t key, uint32_t slot, rlr_limit_t limit)
{
    rlr_table_request_t request;

    memset(&request, 0, sizeof(request));
    request.rule = slot;
    request.identity = identity;
    request.identity_length = rlr_subject_identity(identity, subject, site,
                                                   key);
    request.holder_length = rlr_subject_holder(&request.holder, subject);
    request.limit = limit;
    return request;
}

/* ---- New keys (RateLimitNewIdentities) ---- */

/* Whether the key was seen before, or its address may still bring new ones. */
static bool may_enter(const rlr_site_t *site, rlr_subject_t *subject,
                      rlr_key_t key, rlr_brake_count_t *count)
{
    const rlr_brake_t *brake = &site->brake;
    unsigned char identity[RLR_IDENTITY_MAX];
    unsigned char address[RLR_IDENTITY_MAX];
    rlr_table_request_t known = make_request(identity, site, subject, key,
                                             brake->known_slot, brake->limit);
    rlr_table_request_t fresh = make_request(address, site, subject, RLR_KEY_IP,
                                             brake->new_slot, brake->limit);

    fresh.dry_run = brake->dry_run;
    return rlr_brake_admit(site->table, &known, &fresh, &rlr_clock_monotonic,
                           count);
}

/* The rule for the subject; one whose key may not enter is as if it had sent
 * none, and is charged by its address. */
static const rlr_site_rule_t *find_rule_behind_brake(const rlr_site_t *site,
                                                     rlr_subject_t *subject,
                                                     rlr_brake_count_t *count)
{
    const rlr_site_rule_t *rule = find_rule(site, subject);

    if (site->brake.limit.count == 0 || rule == NULL
        || rule->rule->key == RLR_KEY_IP
        || may_enter(site, subject, rule->rule->key, count)) {
        return rule;
    }
    subject->api_key.present = false;
    subject->user.present = false;
    return find_rule(site, subject);
}

/* ---- Decisions ---- */

static void decide(rlr_verdict_t *verdict, const rlr_site_t *site,
                   rlr_subject_t *subject, rlr_brake_count_t *count)
{
    const rlr_site_rule_t *rule = find_rule_behind_brake(site, subject, count);
    unsigned char identity[RLR_IDENTITY_MAX];
    rlr_table_request_t request;

    verdict->rule = rule;
    if (rule == NULL) {
        verdict->outcome = RLR_UNMATCHED;
        return;
    }
    verdict->quota = find_quota(rule, subject);
    request = make_request(identity, site, subject, rule->rule->key, rule->slot,
                           verdict->quota->limit);
    request.dry_run = rule->dry_run;
    count(site->table, &request, &rlr_clock_monotonic, &verdict->answer);
    if (verdict->answer.decision.admitted) {
        verdict->outcome = RLR_ADMITTED;
    }
    else {
        verdict->outcome = rule->dry_run ? RLR_WOULD_REFUSE : RLR_REFUSED;
    }
}

static void decide_unless_exempt(rlr_verdict_t *verdict, const rlr_site_t *site,
                                 rlr_subject_t *subject,
                                 apr_sockaddr_t *address,
                                 rlr_brake_count_t *count)
{
    memset(verdict, 0, sizeof(*verdict));
    verdict->site = site;
    if (has_exempt_address(site, address) || has_exempt_key(site, subject)) {
        verdict->outcome = RLR_EXEMPT;
        return;
    }
    decide(verdict, site, subject, count);
}

void rlr_limit_decide(rlr_verdict_t *verdict, const rlr_site_t *site,
                      rlr_subject_t *subject, apr_sockaddr_t *address)
{
    decide_unless_exempt(verdict, site, subject, address, rlr_table_admit);
}

void rlr_limit_ask(rlr_verdict_t *verdict, const rlr_site_t *site,
                   rlr_subject_t *subject, apr_sockaddr_t *address)
{
    decide_unless_exempt(verdict, site, subject, address, rlr_table_peek);
}

int rlr_limit_reset(const rlr_site_t *site, rlr_subject_t *subject,
                    rlr_key_t key, const char *rule)
{
    unsigned char identity[RLR_IDENTITY_MAX];
    int count = 0;

    for (int i = 0; i < site->rules->nelts; i++) {
        const rlr_site_rule_t *entry = &APR_ARRAY_IDX(site->rules, i,
                                                      rlr_site_rule_t);
        rlr_table_request_t request;

        if (entry->rule->key != key
            || (rule != NULL && strcmp(entry->rule->name, rule) != 0)) {
            continue;
        }
        request = make_request(identity, site, subject, key, entry->slot,
                               entry->quota.limit);
        count += rlr_table_reset(site->table, &request, &rlr_clock_monotonic);
    }
    return count;
}

static rlr_decision_t charge_warning(const rlr_site_t *site,
                                     const char *identity, rlr_limit_t limit)
{
    rlr_table_request_t request;
    rlr_table_answer_t answer;

    memset(&request, 0, sizeof(request));
    request.rule = site->warning_slot;
    request.identity = identity;
    request.identity_length = strlen(identity);
    request.limit = limit;
    rlr_table_admit(site->table, &request, &rlr_clock_monotonic, &answer);
    return answer.decision;
}

bool rlr_limit_may_warn(const rlr_site_t *site, const char *warning)
{
    return charge_warning(site, warning, warning_limit).admitted;
}

uint32_t rlr_limit_count_minute(const rlr_site_t *site, const char *event)
{
    char identity[64];

    /* Its warning, if there is one, is charged by the name alone. */
    apr_snprintf(identity, sizeof(identity), "%s a minute", event);
    return minute_limit.count
        - charge_warning(site, identity, minute_limit).remaining;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Decides on one request. The first rule of the table that matches the
 * request, and whose key the request carries, decides; exactly one counter is
 * charged. */
#include "decide.h"

#include <string.h>

#include <apr_network_io.h>
#include <apr_strings.h>

#include "../private.h"
#include "decide_store.h"
#include "new_keys.h"

const char *rlr_decide_word(rlr_outcome_t outcome)
{
    static const char *const words[] = {"none", "exempt", "admitted", "refused",
                                        "would-refuse"};

    return words[outcome];
}

/* ---- The rule ---- */

static const rlr_vhost_rule_t *find_rule(const rlr_vhost_t *vhost,
                                         const rlr_subject_t *subject)
{
    const rlr_candidate_t *candidate = rlr_lookup_find(vhost->lookup,
                                                       &subject->target);

    for (; candidate->match != NULL; candidate++) {
        const rlr_vhost_rule_t *rule = &APR_ARRAY_IDX(
            vhost->rules, candidate->rule, rlr_vhost_rule_t);

        if (rlr_subject_has(subject, rule->rule->key)
            && rlr_match_test(candidate->match, &subject->target)) {
            return rule;
        }
    }
    return NULL;
}

/* The limit of the key's override, or of the rule. */
static const rlr_quota_t *find_quota(const rlr_vhost_rule_t *rule,
                                     rlr_subject_t *subject)
{
    rlr_key_t key = rule->rule->key;
    const rlr_quota_t *override;

    if (rule->overrides == NULL) {
        return &rule->quota;
    }
    override = apr_hash_get(rule->overrides,
                            rlr_subject_digest(&subject->credentials[key]),
                            RLR_DIGEST_BYTES);
    return override != NULL ? override : &rule->quota;
}

/* ---- Exemptions ---- */

static bool has_exempt_address(const rlr_vhost_t *vhost,
                               apr_sockaddr_t *address)
{
    const apr_array_header_t *networks = vhost->exempt_networks;

    for (int i = 0; i < networks->nelts && address != NULL; i++) {
        if (apr_ipsubnet_test(APR_ARRAY_IDX(networks, i, apr_ipsubnet_t *),
                              address)) {
            return true;
        }
    }
    return false;
}

static bool has_exempt_key(const rlr_vhost_t *vhost, rlr_subject_t *subject)
{
    rlr_credential_t *api_key = &subject->credentials[RLR_KEY_API];

    if (!api_key->present) {
        return false;
    }
    for (int i = 0; i < vhost->exempt_keys->nelts; i++) {
        if (rlr_digest_equal(
                &APR_ARRAY_IDX(vhost->exempt_keys, i, rlr_digest_t),
                rlr_subject_digest(api_key))) {
            return true;
        }
    }
    return false;
}

/* ---- The counters ---- */

/* Makes a request to the table; its bytes are written to identity. */
static rlr_table_request_t make_request(
    unsigned char identity[RLR_IDENTITY_MAX], const rlr_vhost_t *vhost,
    rlr_subject_t *subject, rlr_key_t key, uint32_t row, rlr_limit_t limit)
{
    rlr_table_request_t request;

    memset(&request, 0, sizeof(request));
    request.row = row;
    request.identity = identity;
    request.identity_length = rlr_subject_identity(identity, subject, vhost,
                                                   key);
    request.holder_length = rlr_subject_holder(&request.holder, subject);
    request.limit = limit;
    return request;
}

/* ---- New keys (RateLimitNewIdentities) ---- */

/* Whether the key is known, or its address may send another new key. */
static bool is_admitted_key(const rlr_vhost_t *vhost, rlr_subject_t *subject,
                            rlr_key_t key, rlr_table_decide_t *table_decide)
{
    const rlr_new_keys_t *new_keys = &vhost->new_keys;
    unsigned char identity[RLR_IDENTITY_MAX];
    unsigned char address[RLR_IDENTITY_MAX];
    rlr_table_request_t known = make_request(
        identity, vhost, subject, key, new_keys->known_row, new_keys->limit);
    rlr_table_request_t fresh = make_request(address, vhost, subject,
                                             RLR_KEY_IP, new_keys->new_row,
                                             new_keys->limit);

    fresh.dry_run = new_keys->dry_run;
    return rlr_new_keys_admit(vhost->table, &known, &fresh,
                              &rlr_clock_monotonic, table_decide);
}

/* The rule for the subject. A new key beyond the limit is ignored, and the
 * request is charged to the address. */
static const rlr_vhost_rule_t *find_rule_of_known_key(
    const rlr_vhost_t *vhost, rlr_subject_t *subject,
    rlr_table_decide_t *table_decide)
{
    const rlr_vhost_rule_t *rule = find_rule(vhost, subject);

    if (vhost->new_keys.limit.count == 0 || rule == NULL
        || rlr_keys[rule->rule->key].header == NULL
        || is_admitted_key(vhost, subject, rule->rule->key, table_decide)) {
        return rule;
    }
    for (int key = 0; key < RLR_KEYS; key++) {
        subject->credentials[key].present = false;
    }
    return find_rule(vhost, subject);
}

/* ---- Decisions ---- */

/* How a request is decided: charged, or not (a peek). */
typedef struct decider_t {
    rlr_table_decide_t *by_table;
    rlr_decide_store_t *by_store;
} decider_t;

static const decider_t admit = {rlr_table_admit, rlr_decide_store_admit};
static const decider_t peek = {rlr_table_peek, rlr_decide_store_peek};

static void decide(rlr_decision_t *decision, const rlr_vhost_t *vhost,
                   rlr_subject_t *subject, const decider_t *decider)
{
    const rlr_vhost_rule_t *rule = find_rule_of_known_key(vhost, subject,
                                                          decider->by_table);
    unsigned char identity[RLR_IDENTITY_MAX];
    rlr_table_request_t request;

    decision->rule = rule;
    if (rule == NULL) {
        decision->outcome = RLR_UNMATCHED;
        return;
    }
    decision->quota = find_quota(rule, subject);
    request = make_request(identity, vhost, subject, rule->rule->key, rule->row,
                           decision->quota->limit);
    request.dry_run = rule->dry_run;
    if (vhost->store != NULL) {
        decider->by_store(vhost, rule->row_name, &request, &decision->counter);
    }
    else {
        decider->by_table(vhost->table, &request, &rlr_clock_monotonic,
                          &decision->counter);
    }
    if (decision->counter.window.admitted) {
        decision->outcome = RLR_ADMITTED;
    }
    else {
        decision->outcome = rule->dry_run ? RLR_WOULD_REFUSE : RLR_REFUSED;
    }
}

static void decide_unless_exempt(rlr_decision_t *decision,
                                 const rlr_vhost_t *vhost,
                                 rlr_subject_t *subject,
                                 apr_sockaddr_t *address,
                                 const decider_t *decider)
{
    memset(decision, 0, sizeof(*decision));
    decision->vhost = vhost;
    if (has_exempt_address(vhost, address) || has_exempt_key(vhost, subject)) {
        decision->outcome = RLR_EXEMPT;
        return;
    }
    decide(decision, vhost, subject, decider);
}

void rlr_decide_admit(rlr_decision_t *decision, const rlr_vhost_t *vhost,
                      rlr_subject_t *subject, apr_sockaddr_t *address)
{
    decide_unless_exempt(decision, vhost, subject, address, &admit);
}

void rlr_decide_peek(rlr_decision_t *decision, const rlr_vhost_t *vhost,
                     rlr_subject_t *subject, apr_sockaddr_t *address)
{
    decide_unless_exempt(decision, vhost, subject, address, &peek);
}

/* Whether the key had admissions here, or the store has removed those of all
 * hosts. */
static bool reset(const rlr_vhost_t *vhost, const rlr_vhost_rule_t *rule,
                  const rlr_table_request_t *request)
{
    bool had_slot = rlr_table_reset(vhost->table, request,
                                    &rlr_clock_monotonic);

    return vhost->store == NULL
        ? had_slot
        : rlr_decide_store_reset(vhost, rule->row_name, request);
}

int rlr_decide_reset(const rlr_vhost_t *vhost, rlr_subject_t *subject,
                     rlr_key_t key, const char *rule)
{
    unsigned char identity[RLR_IDENTITY_MAX];
    int count = 0;

    for (int i = 0; i < vhost->rules->nelts; i++) {
        const rlr_vhost_rule_t *entry = &APR_ARRAY_IDX(vhost->rules, i,
                                                       rlr_vhost_rule_t);
        rlr_table_request_t request;

        if (entry->rule->key != key
            || (rule != NULL && strcmp(entry->rule->name, rule) != 0)) {
            continue;
        }
        request = make_request(identity, vhost, subject, key, entry->row,
                               entry->quota.limit);
        count += reset(vhost, entry, &request);
    }
    return count;
}

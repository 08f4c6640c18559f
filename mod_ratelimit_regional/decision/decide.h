/* SPDX-License-Identifier: Apache-2.0 */
/* The decision about one request: which rule, which counter, yes or no. */
#ifndef RLR_LIMIT_H
#define RLR_LIMIT_H

#include <stdbool.h>

#include "../config/vhost.h"
#include "subject.h"

typedef enum rlr_outcome_t {
    /* No rule of the region is for it. */
    RLR_UNMATCHED,
    /* RateLimitExempt. */
    RLR_EXEMPT,
    RLR_ADMITTED,
    RLR_REFUSED,
    /* What was refused but for a dry run. */
    RLR_WOULD_REFUSE
} rlr_outcome_t;

typedef struct rlr_verdict_t {
    const rlr_site_t *site;
    rlr_outcome_t outcome;
    /* The rule that decided; NULL for RLR_UNMATCHED and RLR_EXEMPT. */
    const rlr_site_rule_t *rule;
    /* The rule's, or the key's own. */
    const rlr_quota_t *quota;
    rlr_table_answer_t answer;
    /* Refused, and let through to the status page alone. */
    bool for_status;
} rlr_verdict_t;

/* Charges the subject and says what follows. address is the client's as httpd
 * knows it, for RateLimitExempt; NULL: not looked at. */
void rlr_limit_decide(rlr_verdict_t *verdict, const rlr_site_t *site,
                      rlr_subject_t *subject, apr_sockaddr_t *address);

/* The same, without charging or counting; decision.remaining is what is left
 * before the request. */
void rlr_limit_ask(rlr_verdict_t *verdict, const rlr_site_t *site,
                   rlr_subject_t *subject, apr_sockaddr_t *address);

/*
 * Forgets what the subject was charged by rules with that key: by the one of
 * that name, or by all (NULL). Returns how many counters that were.
 */
int rlr_limit_reset(const rlr_site_t *site, rlr_subject_t *subject,
                    rlr_key_t key, const char *rule);

/* none, exempt, admitted, refused or would-refuse. */
const char *rlr_outcome_word(rlr_outcome_t outcome);

/* Whether it is time for the warning of this name: once a minute, in all
 * processes together. */
bool rlr_limit_may_warn(const rlr_site_t *site, const char *warning);

/* Counts an event and says how many of this name the last minute had, in all
 * processes. Apart from the warning of the same name. */
uint32_t rlr_limit_count_minute(const rlr_site_t *site, const char *event);

/* Milliseconds as the whole seconds that they begin. */
unsigned rlr_limit_seconds(uint32_t ms);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The decision on one request: its rule, its counter, and whether it is
 * admitted. */
#ifndef RLR_DECIDE_H
#define RLR_DECIDE_H

#include <stdbool.h>

#include "../config/vhost.h"
#include "subject.h"

typedef enum rlr_outcome_t {
    /* No rule of the region matches. */
    RLR_UNMATCHED,
    /* RateLimitExempt. */
    RLR_EXEMPT,
    RLR_ADMITTED,
    RLR_REFUSED,
    /* Admitted by a dry run. */
    RLR_WOULD_REFUSE
} rlr_outcome_t;

typedef struct rlr_decision_t {
    const rlr_vhost_t *vhost;
    rlr_outcome_t outcome;
    /* The rule that decided; NULL for RLR_UNMATCHED and RLR_EXEMPT. */
    const rlr_vhost_rule_t *rule;
    /* Of the rule, or of the key's override. */
    const rlr_quota_t *quota;
    rlr_table_decision_t counter;
    /* Refused, but let through to the status page. */
    bool for_status;
} rlr_decision_t;

/* Decides on the subject and charges its counter. address is the client's
 * address for RateLimitExempt, or NULL. */
void rlr_decide_admit(rlr_decision_t *decision, const rlr_vhost_t *vhost,
                      rlr_subject_t *subject, apr_sockaddr_t *address);

/* Decides without charging or counting; window.remaining does not count the
 * request. */
void rlr_decide_peek(rlr_decision_t *decision, const rlr_vhost_t *vhost,
                     rlr_subject_t *subject, apr_sockaddr_t *address);

/* Resets the subject's counters of rules with the key: of the rule with that
 * name, or of all (NULL). Returns the number of counters. */
int rlr_decide_reset(const rlr_vhost_t *vhost, rlr_subject_t *subject,
                     rlr_key_t key, const char *rule);

/* Returns none, exempt, admitted, refused or would-refuse. */
const char *rlr_decide_word(rlr_outcome_t outcome);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which patterns can be for a path at all, in the order of their rules: most
 * begin with a word, so the byte behind the path's first slash leaves a few of
 * them. Made with the configuration, read-only afterwards. No httpd here.
 */
#ifndef RLR_LOOKUP_H
#define RLR_LOOKUP_H

#include <apr_pools.h>

#include "rule.h"

typedef struct rlr_lookup_t rlr_lookup_t;

typedef struct rlr_candidate_t {
    /* One of a rule's; NULL behind the last candidate. */
    const rlr_match_t *match;
    /* The rule's index. */
    int rule;
} rlr_candidate_t;

/*
 * For the rules of one virtual host, whose targets are stripped of the prefix
 * (NULL: of none). In pool; the rules must live as long.
 */
const rlr_lookup_t *rlr_lookup_make(const rlr_rule_t *const *rules, int count,
                                    const char *strip_prefix, apr_pool_t *pool);

/* The patterns that are to be tested on the target; no other is for it. */
const rlr_candidate_t *rlr_lookup_find(const rlr_lookup_t *lookup,
                                       const rlr_target_t *target);

#endif

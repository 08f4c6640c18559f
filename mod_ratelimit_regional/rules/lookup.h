/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the patterns that can match a path, in the order of their rules, by
 * the byte after the path's first slash: most patterns begin with a word.
 * Built with the configuration, read-only afterwards. No httpd here. */
#ifndef RLR_LOOKUP_H
#define RLR_LOOKUP_H

#include <apr_pools.h>

#include "rule.h"

typedef struct rlr_lookup_t rlr_lookup_t;

typedef struct rlr_candidate_t {
    /* A pattern of a rule; NULL after the last candidate. */
    const rlr_match_t *match;
    /* The rule's index. */
    int rule;
} rlr_candidate_t;

/* Builds the lookup for the rules of a virtual host, whose targets are
 * stripped of the prefix (NULL: none). In pool; the rules must live as long. */
const rlr_lookup_t *rlr_lookup_make(const rlr_rule_t *const *rules, int count,
                                    const char *strip_prefix, apr_pool_t *pool);

/* Returns the patterns to test on the target; no other can match it. */
const rlr_candidate_t *rlr_lookup_find(const rlr_lookup_t *lookup,
                                       const rlr_target_t *target);

#endif

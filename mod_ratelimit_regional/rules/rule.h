/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of the table of limits, and its notation:
 *
 *   NAME MATCH... key=KEY REGION=COUNT/INTERVAL... [CATEGORY]
 *
 * The name identifies the rule over restarts: counters follow it. A rule
 * exists in the regions for which it has a limit. No httpd here.
 */
#ifndef RLR_RULE_H
#define RLR_RULE_H

#include <stdbool.h>

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>

#include "../counter/window.h"
#include "key.h"
#include "match.h"

/* Longest name of a rule, and of a region, without the terminator. */
#define RLR_NAME_MAX 64

typedef struct rlr_rule_limit_t {
    const char *region;
    rlr_limit_t limit;
} rlr_rule_limit_t;

typedef struct rlr_rule_t {
    const char *name;
    /* Alternatives, of which one must match. */
    apr_array_header_t *matches; /* of rlr_match_t */
    rlr_key_t key;
    apr_array_header_t *limits; /* of rlr_rule_limit_t */
    /* A description; never NULL. */
    const char *category;
    /* "line N of FILE", set by the caller. */
    const char *where;
} rlr_rule_t;

/* Parses the words of a rule into *rule, in pool. Returns APR_EINVAL with
 * "NAME: expected ..., got ..." in *problem. */
apr_status_t rlr_rule_parse(rlr_rule_t **rule, int argc, char *const argv[],
                            const char **problem, apr_pool_t *pool);

/* Parses "COUNT/INTERVAL", an interval in whole seconds; see duration.h.
 * Returns APR_EINVAL with "expected ..., got ..." in *problem. */
apr_status_t rlr_rule_parse_limit(rlr_limit_t *limit, const char *text,
                                  const char **problem, apr_pool_t *pool);

/* Whether the text is 1 to RLR_NAME_MAX letters, digits, - and _, a letter or
 * digit first. */
bool rlr_rule_is_name(const char *text);

/* Returns the rule's limit in the region, or NULL if it does not exist
 * there. */
const rlr_limit_t *rlr_rule_limit(const rlr_rule_t *rule, const char *region);

/* Returns the first of `count` earlier rules that matches every request that
 * pattern `index` of the rule matches, so that the pattern never decides; NULL
 * if there is none. */
const rlr_rule_t *rlr_rule_find_cover(const rlr_rule_t *const *earlier,
                                      int count, const rlr_rule_t *rule,
                                      int index, bool head_as_get,
                                      apr_pool_t *pool);

#endif

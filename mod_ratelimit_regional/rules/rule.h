/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row of the table of limits, and the notation it is written in:
 *
 *   NAME MATCH... key=KEY REGION=COUNT/SECONDS... [CATEGORY]
 *
 * The name is the rule's identity: counters follow it. A rule exists in the
 * regions that it gives a limit for. No httpd here.
 */
#ifndef RLR_RULE_H
#define RLR_RULE_H

#include <stdbool.h>

#include <apr_errno.h>
#include <apr_pools.h>
#include <apr_tables.h>

#include "match.h"
#include "../counter/window.h"

/* Longest name of a rule, and of a region, without the terminator. */
#define RLR_NAME_MAX 64

/* What a rule counts by. */
typedef enum rlr_key_t {
    /* The client's address. */
    RLR_KEY_IP,
    /* The header x-api-key. */
    RLR_KEY_API,
    /* The header x-user-id and the client's address. */
    RLR_KEY_USER
} rlr_key_t;

typedef struct rlr_rule_limit_t {
    const char *region;
    rlr_limit_t limit;
} rlr_rule_limit_t;

typedef struct rlr_rule_t {
    const char *name;
    /* Alternatives; one is enough. */
    apr_array_header_t *matches; /* of rlr_match_t */
    rlr_key_t key;
    apr_array_header_t *limits; /* of rlr_rule_limit_t */
    /* For people; never NULL. */
    const char *category;
    /* "line N of FILE", for the caller to set. */
    const char *where;
} rlr_rule_t;

/*
 * Reads the words of a rule into *rule, in pool. APR_EINVAL with a sentence
 * "NAME: expected ..., got ..." in *problem.
 */
apr_status_t rlr_rule_parse(rlr_rule_t **rule, int argc, char *const argv[],
                            const char **problem, apr_pool_t *pool);

/* Reads "COUNT/SECONDS". APR_EINVAL with "expected ..., got ..." in *problem.
 */
apr_status_t rlr_rule_parse_limit(rlr_limit_t *limit, const char *text,
                                  const char **problem, apr_pool_t *pool);

/* The word for the key in the notation. */
const char *rlr_rule_key_name(rlr_key_t key);

/* Letters, digits, - and _, at most RLR_NAME_MAX, a letter or digit first. */
bool rlr_rule_is_name(const char *text);

/* The rule's limit in the region, or NULL: it does not exist there. */
const rlr_limit_t *rlr_rule_limit(const rlr_rule_t *rule, const char *region);

/*
 * The first of `earlier` rules that takes everything that pattern `index` of
 * the rule is for, so that the pattern never decides; NULL when there is none.
 */
const rlr_rule_t *rlr_rule_find_cover(const rlr_rule_t *const *earlier,
                                      int count, const rlr_rule_t *rule,
                                      int index, bool head_as_get,
                                      apr_pool_t *pool);

#endif

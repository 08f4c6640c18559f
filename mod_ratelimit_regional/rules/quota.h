/* SPDX-License-Identifier: Apache-2.0 */
/* A limit as clients are told of it: what is the same in all answers is worked
 * out once, when the configuration is read. */
#ifndef RLR_QUOTA_H
#define RLR_QUOTA_H

#include <apr_pools.h>

#include "../counter/window.h"

/* A part of a text, ready to be copied. */
typedef struct rlr_part_t {
    const char *text;
    size_t length;
} rlr_part_t;

typedef struct rlr_quota_t {
    rlr_limit_t limit;
    const char *policy; /* the value of RateLimit-Policy */
    rlr_part_t left;    /* that of RateLimit, up to its number */
    /* The body of a refusal up to the wait, and behind it. */
    rlr_part_t refusal;
    rlr_part_t refusal_end;
} rlr_quota_t;

/* Fills the quota of a rule, whose name has letters, digits, - and _ only; the
 * texts are in pool. */
void rlr_quota_init(rlr_quota_t *quota, const char *rule, rlr_limit_t limit,
                    apr_pool_t *pool);

/* The value of RateLimit, in pool. */
const char *rlr_quota_left(const rlr_quota_t *quota, uint32_t remaining,
                           uint32_t more_sec, apr_pool_t *pool);

/* The body of a refusal: application/problem+json (RFC 9457), in pool. */
rlr_part_t rlr_quota_problem(const rlr_quota_t *quota, uint32_t wait_sec,
                             apr_pool_t *pool);

#endif

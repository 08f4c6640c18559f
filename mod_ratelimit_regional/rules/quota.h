/* SPDX-License-Identifier: Apache-2.0 */
/* The header values and the body that tell a client its limit. Their constant
 * parts are prepared when the configuration is read. */
#ifndef RLR_QUOTA_H
#define RLR_QUOTA_H

#include <apr_pools.h>

#include "../counter/window.h"

/* A text with its length; without a terminator. */
typedef struct rlr_text_t {
    const char *bytes;
    size_t length;
} rlr_text_t;

typedef struct rlr_quota_t {
    rlr_limit_t limit;
    const char *policy;   /* the value of RateLimit-Policy */
    rlr_text_t remaining; /* the value of RateLimit, up to its first number */
    /* The body of a refusal before and after the wait. */
    rlr_text_t refusal;
    rlr_text_t refusal_end;
} rlr_quota_t;

/* Prepares the texts for a rule's limit, in pool. rule is its name, of letters,
 * digits, - and _ only: it is not escaped. */
void rlr_quota_init(rlr_quota_t *quota, const char *rule, rlr_limit_t limit,
                    apr_pool_t *pool);

/* Returns the value of RateLimit, in pool: `remaining` requests now, and more
 * after reset_sec seconds. */
const char *rlr_quota_remaining(const rlr_quota_t *quota, uint32_t remaining,
                                uint32_t reset_sec, apr_pool_t *pool);

/* Returns the body of a refusal, application/problem+json (RFC 9457), in
 * pool. */
rlr_text_t rlr_quota_problem(const rlr_quota_t *quota, uint32_t wait_sec,
                             apr_pool_t *pool);

/* Returns milliseconds as seconds, rounded up. */
uint32_t rlr_quota_seconds(uint32_t ms);

#endif

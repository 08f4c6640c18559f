/* SPDX-License-Identifier: Apache-2.0 */
/* A limit: so many requests in so much time. */
#ifndef RLR_LIMIT_H
#define RLR_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define RLR_LIMIT_COUNT_MAX        1000000U
#define RLR_LIMIT_INTERVAL_SEC_MAX 86400U

/* `count` requests in every interval of `interval_sec` seconds. */
typedef struct rlr_limit_t {
    uint32_t count;        /* 1 .. RLR_LIMIT_COUNT_MAX */
    uint32_t interval_sec; /* 1 .. RLR_LIMIT_INTERVAL_SEC_MAX */
} rlr_limit_t;

/* Whether both numbers are in range. All functions need a valid limit. */
static inline bool rlr_limit_is_valid(rlr_limit_t limit)
{
    return limit.count >= 1 && limit.count <= RLR_LIMIT_COUNT_MAX
        && limit.interval_sec >= 1
        && limit.interval_sec <= RLR_LIMIT_INTERVAL_SEC_MAX;
}

static inline bool rlr_limit_equal(rlr_limit_t a, rlr_limit_t b)
{
    return a.count == b.count && a.interval_sec == b.interval_sec;
}

#endif

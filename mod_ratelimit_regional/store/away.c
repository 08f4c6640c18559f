/* SPDX-License-Identifier: Apache-2.0 */
/* A bit for each partition. Of one thread; takes the time as an argument. */
#include "away.h"

/* Between calls of a partition that is away. */
#define RETRY_MS 300U

const char *rlr_away_refusal(const rlr_message_reply_t *reply)
{
    switch (reply->status) {
    case RLR_MESSAGE_FULL:
        return "as many hosts as RateLimitStoreHosts use it, some until a "
               "minute after their end";
    case RLR_MESSAGE_OTHER:
        return "hosts with another RateLimitStoreHosts, "
               "RateLimitStoreShareTime or RateLimitStoreFailure use it";
    default:
        return NULL;
    }
}

void rlr_away_try(rlr_away_t *away, uint32_t partition, uint64_t now_ms)
{
    away->tried_ms[partition] = now_ms;
}

bool rlr_away_is_due(const rlr_away_t *away, uint32_t partition,
                     uint64_t now_ms)
{
    return (away->partitions >> partition & 1) != 0
        && now_ms >= away->tried_ms[partition] + RETRY_MS;
}

void rlr_away_set(rlr_away_t *away, uint32_t partition, bool is_away)
{
    uint32_t bit = 1U << partition;

    away->partitions = is_away ? away->partitions | bit
                               : away->partitions & ~bit;
}

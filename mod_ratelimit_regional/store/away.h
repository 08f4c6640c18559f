/* SPDX-License-Identifier: Apache-2.0 */
/* For which partitions the store is away: the nodes of a cluster fail one by
 * one, a server alone for all of them. */
#ifndef RLR_AWAY_H
#define RLR_AWAY_H

#include "../protocol/shared.h"

#define RLR_AWAY_ALL ((1U << RLR_SHARED_PARTITIONS) - 1)

typedef struct rlr_away_t {
    uint32_t partitions;                      /* a bit each */
    uint64_t tried_ms[RLR_SHARED_PARTITIONS]; /* their last call */
} rlr_away_t;

/* Why the store does not let the host take part, or NULL. */
const char *rlr_away_refusal(const rlr_message_reply_t *reply);

/* Records a call that is sent. */
void rlr_away_try(rlr_away_t *away, uint32_t partition, uint64_t now_ms);

/* Whether a partition that is away should be tried again: another process may
 * send the heartbeats that would show this one that it is back. */
bool rlr_away_is_due(const rlr_away_t *away, uint32_t partition,
                     uint64_t now_ms);

/* Records the end of a call; is_away: there is no answer, or a refusal. */
void rlr_away_set(rlr_away_t *away, uint32_t partition, bool is_away);

#endif

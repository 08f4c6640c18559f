/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the slot counters of addresses, for the limiter's tests. */
#ifndef AGENT_T_UNIT_RATELIMIT_SHARE_H
#define AGENT_T_UNIT_RATELIMIT_SHARE_H

#include "ratelimit_segment.h"

/* Repairs until the shares are correct, or a needed lock is held. */
static inline void segment_repair(const rlr_table_t *table)
{
    uint32_t calls = 3 * rlr_walk_slots(table) / RLR_REPAIR_WORK + 8;

    while (rlr_repair_state_is_pending(table) && calls-- > 0) {
        rlr_repair_step(table);
    }
}

/* The number of counted slots above the actual one. */
static inline int64_t segment_excess(const rlr_table_t *table)
{
    uint32_t slots = rlr_walk_slots(table);
    int64_t excess = 0;

    for (uint32_t i = 0; i < slots; i++) {
        excess += (uint32_t)table->shares[i];
        excess -= table->slots[i].holder != 0;
    }
    return excess;
}

/* The smallest excess of a counter; negative if one is too low. */
static inline int64_t segment_least_excess(const rlr_table_t *table)
{
    uint32_t slots = rlr_walk_slots(table);
    uint32_t *held = calloc(slots, sizeof(*held));
    int64_t least = INT64_MAX;

    for (uint32_t i = 0; i < slots; i++) {
        uint64_t holder = table->slots[i].holder;

        if (holder != 0) {
            held[rlr_share_counter(table, holder) - table->shares]++;
        }
    }
    for (uint32_t i = 0; i < slots; i++) {
        int64_t excess = (int64_t)(uint32_t)table->shares[i] - held[i];

        least = excess < least ? excess : least;
    }
    free(held);
    return least;
}

#endif

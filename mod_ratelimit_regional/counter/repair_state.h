/* SPDX-License-Identifier: Apache-2.0 */
/* The phase of the repair of a segment; repair.h has the repair. Private to
 * counter/. */
#ifndef RLR_REPAIR_STATE_H
#define RLR_REPAIR_STATE_H

#include "layout.h"

/* In this order. */
typedef enum rlr_repair_phase_t {
    RLR_REPAIR_NONE,
    RLR_REPAIR_DUE,   /* a lock's owner died: counts may be too high */
    RLR_REPAIR_RESET, /* marks all sets as not recounted */
    RLR_REPAIR_CLEAR, /* sets all recounts to 0 */
    RLR_REPAIR_COUNT, /* adds the slots of each set to the recounts */
    RLR_REPAIR_APPLY  /* replaces the counts by the recounts */
} rlr_repair_phase_t;

/* Whether a repair of the shares is due or unfinished. */
static inline bool rlr_repair_state_is_pending(const rlr_table_t *table)
{
    return atomic_load_explicit(&table->segment->repair, memory_order_relaxed)
        != RLR_REPAIR_NONE;
}

/* Starts or restarts a repair. Relaxed: other threads may see it late, because
 * counts that need it are too high, never too low. */
static inline void rlr_repair_state_request(const rlr_table_t *table)
{
    atomic_store_explicit(&table->segment->repair, RLR_REPAIR_DUE,
                          memory_order_relaxed);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the slots of each address and limits them to a sixteenth of the
 * table. Private to counter/.
 *
 * Each slot stores the hash of its holder, the address that sent its key. An
 * array with as many counters as the table has slots counts the slots of each
 * holder. Holders whose hashes map to the same counter have one share together;
 * since at most 16 counters can be full, an address maps to a full one with a
 * probability of 16 / slots.
 *
 * A counter is one word of two halves, so that both change at once: the count
 * (low) and, during a repair, the recount (high; see repair.h). The count is
 * incremented before a slot gets its holder and decremented after the slot has
 * lost it, so it is never too low. A process that dies in between leaves it one
 * too high, until the repair.
 */
#ifndef RLR_SHARE_H
#define RLR_SHARE_H

#include "lock.h"

/* One, in the recount. */
#define RLR_SHARE_RECOUNT (1ULL << 32)

/* Returns the hash of a holder; length 0: returns 0, the holder of slots that
 * are not counted. */
uint64_t rlr_share_holder(const rlr_table_t *table, const void *bytes,
                          size_t length);

/* Adds a slot of the set to the holder's; false if it has its share. The
 * caller holds the lock of the set. */
bool rlr_share_take(const rlr_table_t *table, uint64_t holder, uint32_t set);

/* Subtracts a slot of the set. The caller holds the lock of the set. */
void rlr_share_give(const rlr_table_t *table, uint64_t holder, uint32_t set);

/* Whether the holder has its share. No lock. */
bool rlr_share_is_full(const rlr_table_t *table, uint64_t holder);

/* Whether another key of the holder is one of its first. No lock. */
bool rlr_share_is_first(const rlr_table_t *table, uint64_t holder);

/* Returns the counter of the holder; two holders may have the same one. */
_Atomic uint64_t *rlr_share_counter(const rlr_table_t *table, uint64_t holder);

#endif

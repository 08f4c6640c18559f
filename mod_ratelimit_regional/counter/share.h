/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the slots of each address, of which none may hold more than a
 * sixteenth of all. Private to counter/.
 *
 * Each slot has the hash of its holder, the address that sent its key. An
 * array of counters, as many as slots, has the number of slots per holder;
 * holders whose hashes map to the same counter have one share together. (At
 * most 16 counters can be full, so an address maps to one of them with a
 * probability of 16 in the number of slots.)
 *
 * A counter is one word with two sums, so that both change at once. The first
 * sum is the one in force. It is incremented before a slot gets its holder and
 * decremented after the slot has lost it: it is never less than the number of
 * slots, and greater only in between. A process that dies there leaves it one
 * too high. A repair then recounts in the second sum; see repair.h.
 */
#ifndef RLR_SHARE_H
#define RLR_SHARE_H

#include "lock.h"

/* One in the second sum. */
#define RLR_SHARE_SECOND (1ULL << 32)

/* Returns the hash of a holder; 0, which is never counted, for no bytes. */
uint64_t rlr_share_holder(const rlr_table_t *table, const void *bytes,
                          size_t length);

/* Adds a slot of the set to the holder's; false if it has its share. The
 * caller holds the lock of the set. */
bool rlr_share_take(const rlr_table_t *table, uint64_t holder, uint32_t set);

/* Subtracts a slot of the set. The caller holds the lock of the set. */
void rlr_share_give(const rlr_table_t *table, uint64_t holder, uint32_t set);

/* Whether the holder has its share. No lock. */
bool rlr_share_is_full(const rlr_table_t *table, uint64_t holder);

/* The counter of the holder; two holders may have the same one. */
_Atomic uint64_t *rlr_share_counter(const rlr_table_t *table, uint64_t holder);

#endif

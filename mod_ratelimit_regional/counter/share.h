/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many slots each address holds, for table*.c only. No address holds more
 * than a sixteenth of all slots.
 *
 * Each slot has the hash of its holder, the address that brought its key. An
 * array of counters, one for each slot of the table, has the number of slots
 * per holder; holders whose hashes fall on the same counter have one share
 * together. (At most 16 counters can be full: that an address meets one of
 * them has a chance of 16 in the number of slots.)
 *
 * A counter has two sums, and is one word, so that both change at once. The
 * first one is what counts. It is raised before the slot has its holder and
 * lowered after it has lost it, so that it is never less than the slots it
 * stands for, and more only while a thread is between the two. A process that
 * dies there leaves it one too high. A repair then recounts it in the second
 * sum; see table_repair.h.
 */
#ifndef RLR_TABLE_SHARE_H
#define RLR_TABLE_SHARE_H

#include "lock.h"

/* One in the second sum. */
#define RLR_TABLE_SHARE_SECOND (1ULL << 32)

/* The hash of whoever brings a key; 0, which is never counted, for no bytes. */
uint64_t rlr_table_share_holder(const rlr_table_t *table, const void *bytes,
                                size_t length);

/* Counts one more slot of the set for the holder; false if it has its share.
 * The lock of the set is held. */
bool rlr_table_share_take(const rlr_table_t *table, uint64_t holder,
                          uint32_t set);

/* One less. The lock of the set is held. */
void rlr_table_share_give(const rlr_table_t *table, uint64_t holder,
                          uint32_t set);

/* Has the holder its share? No lock. */
bool rlr_table_share_is_full(const rlr_table_t *table, uint64_t holder);

/* The counter of the holder; two holders may have the same one. */
_Atomic uint64_t *rlr_table_share_counter(const rlr_table_t *table,
                                          uint64_t holder);

#endif

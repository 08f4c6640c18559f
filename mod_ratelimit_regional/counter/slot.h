/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of keys: finding, claiming and reclaiming them, and the shared
 * counters of keys without a slot. Private to counter/. */
#ifndef RLR_SLOT_H
#define RLR_SLOT_H

#include "share.h"

/* Sets the key of the counter that the keys of `row` and `holder` share while
 * they have no slot. It has no holder itself. */
void rlr_slot_make_shared_key(rlr_table_key_t *shared, const rlr_table_t *table,
                              uint32_t row, uint64_t holder);

/* Returns the slot of the key, or NULL. Without the locks of its sets the slot
 * may pass to another key at any time, which its window then reports. */
rlr_slot_t *rlr_slot_find(const rlr_table_t *table, const rlr_table_key_t *key);

/* Claims a slot for the key that counts *copy, fitted to the limit. NULL: all
 * its ways are live, or its holder has its share. The caller holds the locks
 * of the key's sets. */
rlr_slot_t *rlr_slot_claim_locked(const rlr_table_t *table,
                                  const rlr_table_key_t *key, rlr_limit_t limit,
                                  rlr_window_copy_t *copy,
                                  const rlr_time_t *now);

/* Empties the slot's window, if it still belongs to `owner`. */
void rlr_slot_reset(rlr_slot_t *slot, uint64_t owner, const rlr_clock_t *clock);

/* Searches a few sets for dead keys of the holder (and of holders with the
 * same counter) and reclaims their slots. Each call continues where the last
 * call of any process stopped. The caller holds no lock. */
void rlr_slot_sweep(const rlr_table_t *table, uint64_t holder,
                    const rlr_clock_t *clock);

/* Widens a shared window so that it can decide on `limit` too and counts at
 * least *copy (NULL: nothing). The caller holds the window's lock. */
void rlr_slot_widen_locked(rlr_slot_t *slot, uint64_t owner, uint32_t row,
                           rlr_limit_t limit, const rlr_window_copy_t *copy,
                           const rlr_clock_t *clock);

/* Widens the overflow window of the key; false: its lock failed. */
bool rlr_slot_widen_overflow(const rlr_table_t *table,
                             const rlr_table_key_t *key, rlr_limit_t limit,
                             const rlr_window_copy_t *copy,
                             const rlr_clock_t *clock);

/* Records that a shared counter of the row may be in use for an interval from
 * now. No lock. */
void rlr_slot_record_shared(const rlr_table_t *table, uint32_t row,
                            uint32_t interval_sec, const rlr_clock_t *clock);

/* Whether a shared counter of the row may be in use: then a new key may have
 * been charged already. No lock; a thread with a key's locks sees the records
 * of all threads that held them before. */
bool rlr_slot_has_shared(const rlr_table_t *table, uint32_t row,
                         const rlr_clock_t *clock);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Where keys are, for table*.c only: finding a slot, giving one to a new key,
 * taking it back, and the windows that keys without one share. */
#ifndef RLR_TABLE_PLACE_H
#define RLR_TABLE_PLACE_H

#include "share.h"

/* The key that keys of `rule` and `holder` are counted by while they have no
 * slot. It has no holder itself. */
void rlr_table_make_shared_key(rlr_table_key_t *shared,
                               const rlr_table_t *table, uint32_t rule,
                               uint64_t holder);

/* The slot of the key, or NULL. Without the sets' locks it may be another
 * key's by the time it is used: the window says so. */
rlr_table_slot_t *rlr_table_find(const rlr_table_t *table,
                                 const rlr_table_key_t *key);

/* Gives the key a slot that holds *copy, which is fitted to the limit here, or
 * returns NULL: all its ways are live, or its holder has its share of the
 * slots. The sets' locks are held. */
rlr_table_slot_t *rlr_table_claim_locked(const rlr_table_t *table,
                                         const rlr_table_key_t *key,
                                         rlr_limit_t limit,
                                         rlr_window_copy_t *copy,
                                         const rlr_time_t *now);

/* Empties the slot's window if it is `owner`'s. */
bool rlr_table_reset_slot(rlr_table_slot_t *slot, uint64_t owner,
                          const rlr_clock_t *clock);

/*
 * Looks at a few sets and takes dead keys' slots back from holders that share a
 * counter with this one. Each call goes on where the last one, of whatever
 * process, ended. The caller holds no lock.
 */
void rlr_table_sweep(const rlr_table_t *table, uint64_t holder,
                     const rlr_clock_t *clock);

/* Makes a window that keys share fit for `limit` too, and hold at least *copy
 * (NULL: nothing more). The window's lock is held. */
void rlr_table_widen_locked(rlr_table_slot_t *slot, uint64_t owner,
                            uint32_t rule, rlr_limit_t limit,
                            const rlr_window_copy_t *copy,
                            const rlr_clock_t *clock);

/* The same for the overflow window of the key; false if the lock is not to be
 * had. */
bool rlr_table_widen_overflow(const rlr_table_t *table,
                              const rlr_table_key_t *key, rlr_limit_t limit,
                              const rlr_window_copy_t *copy,
                              const rlr_clock_t *clock);

/*
 * Notes that charges without a slot may count for an interval from now on, or
 * says whether any still do: then a new key of the rule may have been charged
 * already. No lock; who takes a key's locks sees the notes of all who had them.
 */
void rlr_table_note_shared(const rlr_table_t *table, uint32_t rule,
                           uint32_t interval_sec, const rlr_clock_t *clock);
bool rlr_table_has_shared(const rlr_table_t *table, uint32_t rule,
                          const rlr_clock_t *clock);

#endif

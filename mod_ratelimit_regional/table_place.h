/* SPDX-License-Identifier: Apache-2.0 */
/* Where keys are, for table*.c only: finding a slot, giving one to a new key,
 * and the overflow windows for keys that have none. */
#ifndef RLR_TABLE_PLACE_H
#define RLR_TABLE_PLACE_H

#include "table_segment.h"

/* The slot of the key, or NULL. Without the sets' locks it may be another
 * key's by the time it is used: the window says so. */
rlr_table_slot_t *rlr_table_find(const rlr_table_t *table,
                                 const rlr_table_key_t *key);

/* Gives the key a slot that holds *copy, which is fitted to the limit here, or
 * returns NULL: all its ways are live. The sets' locks are held. */
rlr_table_slot_t *rlr_table_claim_locked(const rlr_table_t *table,
                                         const rlr_table_key_t *key,
                                         rlr_limit_t limit,
                                         rlr_window_copy_t *copy,
                                         const rlr_time_t *now);

/* Empties the slot's window if it is `owner`'s. */
bool rlr_table_reset_slot(rlr_table_slot_t *slot, uint64_t owner,
                          const rlr_clock_t *clock);

/* Makes the overflow window of the key fit for `limit` too, and hold at least
 * *copy (NULL: nothing more). Returns false if the lock is not to be had. */
bool rlr_table_widen_overflow(const rlr_table_t *table,
                              const rlr_table_key_t *key, rlr_limit_t limit,
                              const rlr_window_copy_t *copy,
                              const rlr_clock_t *clock);

#endif

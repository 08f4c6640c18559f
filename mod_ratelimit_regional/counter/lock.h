/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a segment; layout.h has what they guard and their order.
 * Private to counter/. */
#ifndef RLR_LOCK_H
#define RLR_LOCK_H

#include "layout.h"

static inline rlr_lock_t *rlr_lock_get(const rlr_table_t *table, uint32_t set)
{
    return &table->locks[set % RLR_SET_LOCKS];
}

/* Takes the lock of one set. Here and below, a lock whose owner died is
 * recovered and a repair requested. False: a live owner has held it for three
 * seconds, or the system failed. */
bool rlr_lock_set(const rlr_table_t *table, uint32_t set);
/* Likewise, but false at once if another thread holds the lock. */
bool rlr_lock_try_set(const rlr_table_t *table, uint32_t set);
void rlr_unlock_set(const rlr_table_t *table, uint32_t set);

/*
 * Takes the locks of the sets of one key, or of two (`other` not NULL). False:
 * one failed, and none is held. A lock whose owner died can be recovered
 * because every write that a lock guards leaves the segment valid. The caller
 * holds no lock.
 */
bool rlr_lock_keys(const rlr_table_t *table, const rlr_table_key_t *key,
                   const rlr_table_key_t *other);
void rlr_unlock_keys(const rlr_table_t *table, const rlr_table_key_t *key,
                     const rlr_table_key_t *other);

/* Takes the lock for rebuilding the overflow windows of an index, after the
 * locks of sets. */
bool rlr_lock_overflow(const rlr_table_t *table, uint32_t overflow);
void rlr_unlock_overflow(const rlr_table_t *table, uint32_t overflow);

/* Takes the lock of the repair; false if another thread holds it. */
bool rlr_lock_try_repair(const rlr_table_t *table);
void rlr_unlock_repair(const rlr_table_t *table);

#endif

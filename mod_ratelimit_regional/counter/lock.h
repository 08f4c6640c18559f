/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a segment, for table*.c only; see table_segment.h for what they
 * guard and their order. */
#ifndef RLR_TABLE_LOCK_H
#define RLR_TABLE_LOCK_H

#include "layout.h"

/* Damaged, or not repaired to the end yet. */
static inline bool rlr_table_is_damaged(const rlr_table_t *table)
{
    return atomic_load_explicit(&table->segment->repair, memory_order_relaxed)
        != RLR_TABLE_SOUND;
}

/* A repair begins, or begins again. Relaxed, because the sums that it is about
 * are too high and never too low: it may be seen late. */
static inline void rlr_table_mark_damaged(const rlr_table_t *table)
{
    atomic_store_explicit(&table->segment->repair, RLR_TABLE_DAMAGED,
                          memory_order_relaxed);
}

static inline rlr_table_lock_t *rlr_table_get_lock(const rlr_table_t *table,
                                                   uint32_t set)
{
    return &table->locks[set % RLR_TABLE_SET_LOCKS];
}

/* The lock of one set alone. A lock whose owner died is taken over, here and
 * below, and the segment marked as damaged. False: the owner lives and has not
 * released it for three seconds, or the system refused. */
bool rlr_table_lock_set(const rlr_table_t *table, uint32_t set);
/* The same, but false too while somebody else has the lock. */
bool rlr_table_try_lock_set(const rlr_table_t *table, uint32_t set);
void rlr_table_unlock_set(const rlr_table_t *table, uint32_t set);

/*
 * Takes the locks of the sets of one key, or of two (`other` not NULL). False:
 * one was not to be had (see above), and none is held. A lock
 * whose owner died is taken over: every write that a lock guards leaves the
 * segment valid. The caller holds no lock.
 */
bool rlr_table_lock_keys(const rlr_table_t *table, const rlr_table_key_t *key,
                         const rlr_table_key_t *other);
void rlr_table_unlock_keys(const rlr_table_t *table, const rlr_table_key_t *key,
                           const rlr_table_key_t *other);

/* The lock for rebuilding the overflow windows of a group; taken after the
 * locks of sets. */
bool rlr_table_lock_group(const rlr_table_t *table, uint32_t group);
void rlr_table_unlock_group(const rlr_table_t *table, uint32_t group);

/* The lock of the repair; false while somebody else has it. */
bool rlr_table_try_lock_repair(const rlr_table_t *table);
void rlr_table_unlock_repair(const rlr_table_t *table);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs the counters of table_share.c in four phases, a slice of work at a
 * time; see table_repair.h. */
#include "repair.h"

#include "share.h"

/* One phase: what it does to each lock, counter or set. */
typedef struct phase_t {
    /* False: not now, somebody has the lock. */
    bool (*act)(const rlr_table_t *table, uint32_t index);
    uint32_t units; /* of work, for one */
} phase_t;

/* Second sums change only under the lock of a counted set. Once every lock has
 * been taken here, no thread is about to change one. */
static bool uncount_lock(const rlr_table_t *table, uint32_t lock)
{
    if (!rlr_table_try_lock_set(table, lock)) {
        return false;
    }
    rlr_table_get_lock(table, lock)->counted = 0;
    rlr_table_unlock_set(table, lock);
    return true;
}

/* Relaxed, here and below, as all changes of counters are. */
static bool clear_counter(const rlr_table_t *table, uint32_t index)
{
    atomic_fetch_and_explicit(&table->shares[index], RLR_TABLE_SHARE_SECOND - 1,
                              memory_order_relaxed);
    return true;
}

static bool count_set(const rlr_table_t *table, uint32_t set)
{
    if (!rlr_table_try_lock_set(table, set)) {
        return false;
    }
    for (uint32_t way = 0; way < RLR_TABLE_WAYS; way++) {
        uint64_t holder = atomic_load_explicit(
            &rlr_table_slot(table, set, way)->holder, memory_order_relaxed);

        if (holder != 0) {
            atomic_fetch_add_explicit(rlr_table_share_counter(table, holder),
                                      RLR_TABLE_SHARE_SECOND,
                                      memory_order_relaxed);
        }
    }
    rlr_table_get_lock(table, set)->counted = set / RLR_TABLE_SET_LOCKS + 1;
    rlr_table_unlock_set(table, set);
    return true;
}

/* All sets are in: both sums change together, in either order with this. */
static bool apply_counter(const rlr_table_t *table, uint32_t index)
{
    _Atomic uint64_t *counter = &table->shares[index];
    uint64_t sums = atomic_load_explicit(counter, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(counter, &sums, sums >> 32,
                                                  memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
    return true;
}

static const phase_t phases[] = {
    [RLR_TABLE_UNCOUNT] = {uncount_lock, 1},
    [RLR_TABLE_CLEAR] = {clear_counter, 1},
    [RLR_TABLE_COUNT] = {count_set, RLR_TABLE_WAYS},
    [RLR_TABLE_APPLY] = {apply_counter, 1}};

/* How many locks, counters or sets the phase has. */
static uint32_t get_size(const rlr_table_t *table, rlr_table_repair_t phase)
{
    switch (phase) {
    case RLR_TABLE_UNCOUNT:
        return RLR_TABLE_SET_LOCKS;
    case RLR_TABLE_COUNT:
        return table->sets;
    case RLR_TABLE_CLEAR:
    case RLR_TABLE_APPLY:
        return table->sets * RLR_TABLE_WAYS;
    case RLR_TABLE_SOUND:
    case RLR_TABLE_DAMAGED:
    default:
        return 0;
    }
}

/* Somebody may find another dead owner at the same time: then the repair begins
 * anew. */
static void begin_next_phase(const rlr_table_t *table, uint32_t phase)
{
    uint32_t next = phase == RLR_TABLE_APPLY ? RLR_TABLE_SOUND : phase + 1;

    table->segment->repaired = 0;
    atomic_compare_exchange_strong_explicit(&table->segment->repair, &phase,
                                            next, memory_order_relaxed,
                                            memory_order_relaxed);
}

static void repair_some_locked(const rlr_table_t *table)
{
    rlr_table_segment_t *segment = table->segment;
    uint32_t units = 0;

    while (units < RLR_TABLE_REPAIR_WORK && rlr_table_is_damaged(table)) {
        uint32_t phase = atomic_load_explicit(&segment->repair,
                                              memory_order_relaxed);

        if (segment->repaired >= get_size(table, phase)) {
            begin_next_phase(table, phase);
        }
        else if (phases[phase].act(table, segment->repaired)) {
            segment->repaired++;
            units += phases[phase].units;
        }
        else {
            return;
        }
    }
}

void rlr_table_repair_some(const rlr_table_t *table)
{
    if (rlr_table_try_lock_repair(table)) {
        repair_some_locked(table);
        rlr_table_unlock_repair(table);
    }
}

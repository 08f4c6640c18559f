/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs the counters of share.c in four phases, a slice of work per call. */
#include "repair.h"

#include "share.h"

/* A phase: its action on each lock, counter or set. */
typedef struct phase_t {
    /* False: the lock is held by another thread. */
    bool (*act)(const rlr_table_t *table, uint32_t index);
    uint32_t units; /* of work per action */
} phase_t;

/* Recounts change only under the lock of a recounted set. Once this phase has
 * held every lock, no thread is about to change a recount. */
static bool reset_lock(const rlr_table_t *table, uint32_t lock)
{
    if (!rlr_lock_try_set(table, lock)) {
        return false;
    }
    rlr_lock_get(table, lock)->recounted = 0;
    rlr_unlock_set(table, lock);
    return true;
}

/* Relaxed, here and below, like all changes of counters. */
static bool clear_counter(const rlr_table_t *table, uint32_t index)
{
    atomic_fetch_and_explicit(&table->shares[index], RLR_SHARE_RECOUNT - 1,
                              memory_order_relaxed);
    return true;
}

static bool count_set(const rlr_table_t *table, uint32_t set)
{
    if (!rlr_lock_try_set(table, set)) {
        return false;
    }
    for (uint32_t way = 0; way < RLR_WAYS; way++) {
        uint64_t holder = atomic_load_explicit(
            &rlr_layout_slot(table, set, way)->holder, memory_order_relaxed);

        if (holder != 0) {
            atomic_fetch_add_explicit(rlr_share_counter(table, holder),
                                      RLR_SHARE_RECOUNT, memory_order_relaxed);
        }
    }
    rlr_lock_get(table, set)->recounted = set / RLR_SET_LOCKS + 1;
    rlr_unlock_set(table, set);
    return true;
}

/* All sets are recounted, so other threads change the count and the recount
 * together, before or after this. */
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

static const phase_t phases[] = {[RLR_REPAIR_RESET] = {reset_lock, 1},
                                 [RLR_REPAIR_CLEAR] = {clear_counter, 1},
                                 [RLR_REPAIR_COUNT] = {count_set, RLR_WAYS},
                                 [RLR_REPAIR_APPLY] = {apply_counter, 1}};

/* The number of locks, counters or sets of the phase. */
static uint32_t get_size(const rlr_table_t *table, rlr_repair_phase_t phase)
{
    switch (phase) {
    case RLR_REPAIR_RESET:
        return RLR_SET_LOCKS;
    case RLR_REPAIR_COUNT:
        return table->sets;
    case RLR_REPAIR_CLEAR:
    case RLR_REPAIR_APPLY:
        return table->sets * RLR_WAYS;
    case RLR_REPAIR_NONE:
    case RLR_REPAIR_DUE:
    default:
        return 0;
    }
}

/* Another thread may find a dead owner concurrently; the repair then
 * restarts. */
static void begin_next_phase(const rlr_table_t *table, uint32_t phase)
{
    uint32_t next = phase == RLR_REPAIR_APPLY ? RLR_REPAIR_NONE : phase + 1;

    table->segment->phase_done = 0;
    atomic_compare_exchange_strong_explicit(&table->segment->repair, &phase,
                                            next, memory_order_relaxed,
                                            memory_order_relaxed);
}

static void repair_some_locked(const rlr_table_t *table)
{
    rlr_segment_t *segment = table->segment;
    uint32_t units = 0;

    while (units < RLR_REPAIR_WORK && rlr_repair_state_is_pending(table)) {
        uint32_t phase = atomic_load_explicit(&segment->repair,
                                              memory_order_relaxed);

        if (segment->phase_done >= get_size(table, phase)) {
            begin_next_phase(table, phase);
        }
        else if (phases[phase].act(table, segment->phase_done)) {
            segment->phase_done++;
            units += phases[phase].units;
        }
        else {
            return;
        }
    }
}

void rlr_repair_step(const rlr_table_t *table)
{
    if (rlr_lock_try_repair(table)) {
        repair_some_locked(table);
        rlr_unlock_repair(table);
    }
}

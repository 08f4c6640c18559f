/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, claims and reclaims slots, each in one of three sets (choice.h). */
#include "slot.h"

#include <stddef.h>

/* Sets that a sweep searches. */
#define SWEPT_SETS 8U

/* Added to the recorded time, so that it is written about once a second. */
#define RECORD_SLACK_MS 1000U

/* A clock that stands still: to read the real one sixteen times would cost more
 * than the claim. An older time only keeps a window live for longer. */
static void read_frozen(rlr_time_t *now, void *baton)
{
    *now = *(const rlr_time_t *)baton;
}

void rlr_slot_make_shared_key(rlr_table_key_t *shared, const rlr_table_t *table,
                              uint32_t row, uint64_t holder)
{
    /* No key has these bytes: the holder is a keyed hash. */
    uint64_t identity[2] = {holder, UINT64_MAX};

    rlr_table_key_fill(shared, table, row,
                       rlr_siphash_compute(table->row_parts[row].key, identity,
                                           sizeof(identity)));
}

rlr_slot_t *rlr_slot_find(const rlr_table_t *table, const rlr_table_key_t *key)
{
    /* The tags of the other sets load while the first are compared. */
    for (int i = 1; i < RLR_CHOICES; i++) {
        __builtin_prefetch(&table->tags[key->sets[i]]);
    }
    for (int i = 0; i < RLR_CHOICES; i++) {
        const rlr_tags_t *tags = &table->tags[key->sets[i]];

        /* The order in which ways are claimed. */
        for (uint32_t way = RLR_WAYS; way-- > 0;) {
            /* Acquire: the slot is at least as new as the tag. */
            if (atomic_load_explicit(&tags->tag[way], memory_order_acquire)
                == key->tag) {
                rlr_slot_t *slot = rlr_layout_slot(table, key->sets[i], way);

                if (atomic_load_explicit(&slot->window.owner,
                                         memory_order_acquire)
                    == key->owner) {
                    return slot;
                }
            }
        }
    }
    return NULL;
}

/*
 * Claims the way for the key if its window is dead and the holder still has
 * less than its share. The tag is written last: until then the key is not
 * found here, and a process that dies in between leaves a slot without a key,
 * free again once its window expires.
 */
static bool claim_way_locked(const rlr_table_t *table,
                             const rlr_table_key_t *key, uint32_t set,
                             uint32_t way, rlr_limit_t limit,
                             const rlr_window_copy_t *copy,
                             const rlr_time_t *now)
{
    rlr_slot_t *slot = rlr_layout_slot(table, set, way);
    rlr_time_t frozen_time = *now;
    rlr_clock_t frozen = {read_frozen, &frozen_time};
    rlr_window_copy_t nothing;
    uint64_t former;

    if (!rlr_share_take(table, key->holder, set)) {
        return false;
    }
    if (!rlr_window_close(&nothing, &slot->window, 0, true, &frozen)) {
        rlr_share_give(table, key->holder, set);
        return false;
    }
    rlr_window_begin(&slot->window, copy, &frozen);
    atomic_store_explicit(&slot->row, (uint16_t)key->row, memory_order_relaxed);
    atomic_store_explicit(&slot->generation, (uint16_t)table->generation,
                          memory_order_relaxed);
    atomic_store_explicit(&slot->logged_ms, rlr_layout_unlogged(limit, now),
                          memory_order_relaxed);
    former = atomic_exchange_explicit(&slot->holder, key->holder,
                                      memory_order_relaxed);
    rlr_share_give(table, former, set);
    rlr_window_finish(&slot->window, key->owner, limit, copy);
    atomic_store_explicit(&table->tags[set].tag[way], key->tag,
                          memory_order_release);
    return true;
}

/* Returns the ways of a set, as bits, without a key or with a dead one. */
static uint32_t find_usable_locked(const rlr_table_t *table, uint32_t set,
                                   const rlr_clock_t *clock)
{
    uint32_t usable = 0;

    for (uint32_t way = 0; way < RLR_WAYS; way++) {
        rlr_slot_t *slot = rlr_layout_slot(table, set, way);

        if (atomic_load_explicit(&table->tags[set].tag[way],
                                 memory_order_relaxed)
            == 0) {
            usable |= 1U << way;
            continue;
        }
        /* A window that a dead process left closed would stay live forever. */
        rlr_window_repair(&slot->window);
        usable |= (uint32_t)!rlr_window_is_live(&slot->window, clock) << way;
    }
    return usable;
}

static rlr_slot_t *claim_in_set_locked(const rlr_table_t *table,
                                       const rlr_table_key_t *key, uint32_t set,
                                       uint32_t usable, rlr_limit_t limit,
                                       const rlr_window_copy_t *copy,
                                       const rlr_time_t *now)
{
    /* The last ways, which fewer keys may claim, first. */
    for (uint32_t way = RLR_WAYS; way-- > 0;) {
        /* A dead window may have become live since. */
        if ((usable >> way & 1) != 0
            && claim_way_locked(table, key, set, way, limit, copy, now)) {
            return rlr_layout_slot(table, set, way);
        }
    }
    return NULL;
}

/* The ways of its sets that the key may claim. */
static uint32_t get_ways(const rlr_table_key_t *key, rlr_limit_t limit)
{
    uint32_t ways = RLR_WAYS_ALL;

    if (limit.interval_sec <= RLR_SHORT_SEC) {
        ways |= RLR_WAYS_SHORT;
    }
    return key->holder == 0 || key->is_first ? ways | RLR_WAYS_SHARED : ways;
}

static rlr_slot_t *claim_any_locked(const rlr_table_t *table,
                                    const rlr_table_key_t *key,
                                    rlr_limit_t limit,
                                    const rlr_window_copy_t *copy,
                                    const rlr_time_t *now)
{
    rlr_time_t frozen_time = *now;
    rlr_clock_t frozen = {read_frozen, &frozen_time};
    uint32_t ways = get_ways(key, limit);
    uint32_t usable[RLR_CHOICES];
    rlr_slot_t *slot = NULL;

    for (int i = 0; i < RLR_CHOICES; i++) {
        usable[i] = ways & find_usable_locked(table, key->sets[i], &frozen);
    }
    /* The emptiest set first, which balances the sets. */
    for (int i = 0; i < RLR_CHOICES && slot == NULL; i++) {
        int emptiest = rlr_choice_emptiest(usable);

        slot = claim_in_set_locked(table, key, key->sets[emptiest],
                                   usable[emptiest], limit, copy, now);
        usable[emptiest] = 0;
    }
    return slot;
}

rlr_slot_t *rlr_slot_claim_locked(const rlr_table_t *table,
                                  const rlr_table_key_t *key, rlr_limit_t limit,
                                  rlr_window_copy_t *copy,
                                  const rlr_time_t *now)
{
    if (rlr_share_is_full(table, key->holder)) {
        return NULL;
    }
    rlr_window_copy_fit(copy, NULL, limit);
    return claim_any_locked(table, key, limit, copy, now);
}

/* ---- Reclaiming slots ---- */

static bool is_on_counter(const rlr_table_t *table, const rlr_slot_t *slot,
                          const _Atomic uint64_t *counter)
{
    uint64_t holder = atomic_load_explicit(&slot->holder, memory_order_relaxed);

    return holder != 0 && rlr_share_counter(table, holder) == counter;
}

/* Reclaims the slot if its key is dead; a key that returns is a new one.
 * Without the tag the slot is not found; the holder is cleared last, so that
 * it is counted until then. */
static void reclaim_locked(const rlr_table_t *table, uint32_t set, uint32_t way,
                           const rlr_clock_t *clock)
{
    rlr_slot_t *slot = rlr_layout_slot(table, set, way);
    rlr_window_copy_t nothing;

    if (!rlr_window_close(&nothing, &slot->window, 0, true, clock)) {
        return;
    }
    rlr_window_begin(&slot->window, &nothing, clock);
    atomic_store_explicit(&table->tags[set].tag[way], 0, memory_order_release);
    rlr_window_finish(&slot->window, RLR_OVERFLOW_OWNER,
                      rlr_window_limit(&slot->window), &nothing);
    rlr_share_give(
        table, atomic_exchange_explicit(&slot->holder, 0, memory_order_relaxed),
        set);
}

static void sweep_set(const rlr_table_t *table, uint32_t set,
                      const _Atomic uint64_t *counter, const rlr_clock_t *clock)
{
    uint32_t found = 0;

    for (uint32_t way = 0; way < RLR_WAYS; way++) {
        found |= (uint32_t)is_on_counter(
                     table, rlr_layout_slot(table, set, way), counter)
            << way;
    }
    if (found == 0 || !rlr_lock_set(table, set)) {
        return;
    }
    for (uint32_t way = 0; way < RLR_WAYS; way++) {
        if ((found >> way & 1) != 0
            && is_on_counter(table, rlr_layout_slot(table, set, way),
                             counter)) {
            reclaim_locked(table, set, way, clock);
        }
    }
    rlr_unlock_set(table, set);
}

void rlr_slot_sweep(const rlr_table_t *table, uint64_t holder,
                    const rlr_clock_t *clock)
{
    const _Atomic uint64_t *counter = rlr_share_counter(table, holder);
    uint32_t first = atomic_fetch_add_explicit(
        &table->segment->sweep_set, SWEPT_SETS, memory_order_relaxed);

    for (uint32_t i = 0; i < SWEPT_SETS; i++) {
        sweep_set(table, (first + i) % table->sets, counter, clock);
    }
}

void rlr_slot_reset(rlr_slot_t *slot, uint64_t owner, const rlr_clock_t *clock)
{
    rlr_time_t now;

    if (!rlr_window_reset(&slot->window, owner)) {
        return;
    }
    clock->read(&now, clock->baton);
    atomic_store_explicit(
        &slot->logged_ms,
        rlr_layout_unlogged(rlr_window_limit(&slot->window), &now),
        memory_order_relaxed);
}

static rlr_limit_t widest(rlr_limit_t a, rlr_limit_t b)
{
    rlr_limit_t wide = {a.count > b.count ? a.count : b.count,
                        a.interval_sec > b.interval_sec ? a.interval_sec
                                                        : b.interval_sec};

    return wide;
}

void rlr_slot_widen_locked(rlr_slot_t *slot, uint64_t owner, uint32_t row,
                           rlr_limit_t limit, const rlr_window_copy_t *copy,
                           const rlr_clock_t *clock)
{
    rlr_window_copy_t held;
    rlr_time_t now;

    rlr_window_close(&held, &slot->window, 0, false, clock);
    if (held.count > 0) {
        limit = widest(limit, rlr_window_limit(&slot->window));
    }
    else {
        clock->read(&now, clock->baton);
        atomic_store_explicit(&slot->logged_ms,
                              rlr_layout_unlogged(limit, &now),
                              memory_order_relaxed);
    }
    rlr_window_copy_fit(&held, copy, limit);
    rlr_window_begin(&slot->window, &held, clock);
    atomic_store_explicit(&slot->row, (uint16_t)row, memory_order_relaxed);
    rlr_window_finish(&slot->window, owner, limit, &held);
}

bool rlr_slot_widen_overflow(const rlr_table_t *table,
                             const rlr_table_key_t *key, rlr_limit_t limit,
                             const rlr_window_copy_t *copy,
                             const rlr_clock_t *clock)
{
    uint32_t overflow = rlr_table_key_overflow(key);

    if (!rlr_lock_overflow(table, overflow)) {
        return false;
    }
    rlr_slot_widen_locked(rlr_layout_overflow_slot(table, key->row, overflow),
                          RLR_OVERFLOW_OWNER, key->row, limit, copy, clock);
    rlr_unlock_overflow(table, overflow);
    return true;
}

void rlr_slot_record_shared(const rlr_table_t *table, uint32_t row,
                            uint32_t interval_sec, const rlr_clock_t *clock)
{
    _Atomic uint64_t *until_ms = &table->row_parts[row].shared_until_ms;
    uint64_t recorded = atomic_load_explicit(until_ms, memory_order_relaxed);
    rlr_time_t now;
    uint64_t end;

    clock->read(&now, clock->baton);
    end = now.ceil_ms + interval_sec * 1000ULL;
    while (recorded < end
           && !atomic_compare_exchange_weak_explicit(
               until_ms, &recorded, end + RECORD_SLACK_MS, memory_order_relaxed,
               memory_order_relaxed)) {
    }
}

bool rlr_slot_has_shared(const rlr_table_t *table, uint32_t row,
                         const rlr_clock_t *clock)
{
    uint64_t recorded = atomic_load_explicit(
        &table->row_parts[row].shared_until_ms, memory_order_relaxed);
    rlr_time_t now;

    if (recorded == 0) {
        return false;
    }
    clock->read(&now, clock->baton);
    return now.floor_ms <= recorded;
}

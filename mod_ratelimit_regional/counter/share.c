/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the slots of each address. */
#include "share.h"

#include <stddef.h>

uint64_t rlr_share_holder(const rlr_table_t *table, const void *bytes,
                          size_t length)
{
    rlr_siphash_t hash;

    if (length == 0) {
        return 0;
    }
    hash = rlr_siphash_compute(table->segment->secret, bytes, length);
    return hash.first != 0 ? hash.first : 1;
}

_Atomic uint64_t *rlr_share_counter(const rlr_table_t *table, uint64_t holder)
{
    uint64_t counters = (uint64_t)table->sets * RLR_WAYS;

    return &table->shares[(holder >> 32) * counters >> 32];
}

static uint32_t get_share(const rlr_table_t *table)
{
    return table->sets * RLR_WAYS / RLR_SHARE;
}

/* One slot of the set: one in the count, and one in the recount if a repair has
 * recounted the set. */
static uint64_t get_one(const rlr_table_t *table, uint32_t set)
{
    uint32_t recounted = rlr_lock_get(table, set)->recounted;

    return set / RLR_SET_LOCKS < recounted ? RLR_SHARE_RECOUNT + 1 : 1;
}

/* Relaxed, here and below: no other memory depends on a counter. */
bool rlr_share_take(const rlr_table_t *table, uint64_t holder, uint32_t set)
{
    _Atomic uint64_t *counter = rlr_share_counter(table, holder);
    uint64_t one = get_one(table, set);
    uint32_t share = get_share(table);
    uint64_t held = atomic_load_explicit(counter, memory_order_relaxed);

    do {
        if (holder != 0 && (uint32_t)held >= share) {
            return false;
        }
    } while (holder != 0
             && !atomic_compare_exchange_weak_explicit(
                 counter, &held, held + one, memory_order_relaxed,
                 memory_order_relaxed));
    return true;
}

void rlr_share_give(const rlr_table_t *table, uint64_t holder, uint32_t set)
{
    if (holder != 0) {
        atomic_fetch_sub_explicit(rlr_share_counter(table, holder),
                                  get_one(table, set), memory_order_relaxed);
    }
}

bool rlr_share_is_full(const rlr_table_t *table, uint64_t holder)
{
    return holder != 0
        && (uint32_t)atomic_load_explicit(rlr_share_counter(table, holder),
                                          memory_order_relaxed)
        >= get_share(table);
}

bool rlr_share_is_first(const rlr_table_t *table, uint64_t holder)
{
    return holder != 0
        && (uint32_t)atomic_load_explicit(rlr_share_counter(table, holder),
                                          memory_order_relaxed)
        < RLR_SHARE_FIRST;
}

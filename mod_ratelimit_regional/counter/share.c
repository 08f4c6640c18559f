/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the slots of each address; see table_share.h. */
#include "share.h"

#include <stddef.h>

uint64_t rlr_table_share_holder(const rlr_table_t *table, const void *bytes,
                                size_t length)
{
    rlr_siphash_t hash;

    if (length == 0) {
        return 0;
    }
    hash = rlr_siphash_compute(table->segment->secret, bytes, length);
    return hash.first != 0 ? hash.first : 1;
}

_Atomic uint64_t *rlr_table_share_counter(const rlr_table_t *table,
                                          uint64_t holder)
{
    uint64_t counters = (uint64_t)table->sets * RLR_TABLE_WAYS;

    return &table->shares[(holder >> 32) * counters >> 32];
}

static uint32_t get_share(const rlr_table_t *table)
{
    return table->sets * RLR_TABLE_WAYS / RLR_TABLE_SHARE;
}

/* One slot of the set, in the first sum and, if the set is in the second one of
 * a repair, in that too: one atomic change of both. */
static uint64_t get_one(const rlr_table_t *table, uint32_t set)
{
    uint32_t counted = rlr_table_get_lock(table, set)->counted;

    return set / RLR_TABLE_SET_LOCKS < counted ? RLR_TABLE_SHARE_SECOND + 1 : 1;
}

/* Relaxed, here and below: a counter guards no other memory. */
bool rlr_table_share_take(const rlr_table_t *table, uint64_t holder,
                          uint32_t set)
{
    _Atomic uint64_t *counter = rlr_table_share_counter(table, holder);
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

void rlr_table_share_give(const rlr_table_t *table, uint64_t holder,
                          uint32_t set)
{
    if (holder != 0) {
        atomic_fetch_sub_explicit(rlr_table_share_counter(table, holder),
                                  get_one(table, set), memory_order_relaxed);
    }
}

bool rlr_table_share_is_full(const rlr_table_t *table, uint64_t holder)
{
    return holder != 0
        && (uint32_t)atomic_load_explicit(
               rlr_table_share_counter(table, holder), memory_order_relaxed)
        >= get_share(table);
}

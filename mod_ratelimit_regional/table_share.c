/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the slots of each address; see table_share.h. */
#include "table_share.h"

#include <stddef.h>

/* ---- Counting ---- */

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

_Atomic uint32_t *rlr_table_share_counter(const rlr_table_t *table,
                                          uint64_t holder)
{
    uint64_t counters = (uint64_t)table->sets * RLR_TABLE_WAYS;

    return &table->shares[(holder >> 32) * counters >> 32];
}

static uint32_t get_share(const rlr_table_t *table)
{
    return table->sets * RLR_TABLE_WAYS / RLR_TABLE_SHARE;
}

/* Relaxed, here and below: a counter guards no other memory. */
bool rlr_table_share_take(const rlr_table_t *table, uint64_t holder)
{
    _Atomic uint32_t *counter = rlr_table_share_counter(table, holder);
    uint32_t share = get_share(table);
    uint32_t held = atomic_load_explicit(counter, memory_order_relaxed);

    do {
        if (holder != 0 && held >= share) {
            return false;
        }
    } while (holder != 0
             && !atomic_compare_exchange_weak_explicit(counter, &held, held + 1,
                                                       memory_order_relaxed,
                                                       memory_order_relaxed));
    return true;
}

void rlr_table_share_give(const rlr_table_t *table, uint64_t holder)
{
    if (holder != 0) {
        atomic_fetch_sub_explicit(rlr_table_share_counter(table, holder), 1,
                                  memory_order_relaxed);
    }
}

bool rlr_table_share_is_full(const rlr_table_t *table, uint64_t holder)
{
    return holder != 0
        && atomic_load_explicit(rlr_table_share_counter(table, holder),
                                memory_order_relaxed)
        >= get_share(table);
}

/* ---- Repair ---- */

static bool lock_all_sets(const rlr_table_t *table)
{
    for (uint32_t i = 0; i < RLR_TABLE_SET_LOCKS; i++) {
        if (!rlr_table_lock_set(table, i)) {
            while (i > 0) {
                rlr_table_unlock_set(table, --i);
            }
            return false;
        }
    }
    return true;
}

static void unlock_all_sets(const rlr_table_t *table)
{
    for (uint32_t i = RLR_TABLE_SET_LOCKS; i > 0; i--) {
        rlr_table_unlock_set(table, i - 1);
    }
}

static void count_all_locked(const rlr_table_t *table)
{
    size_t slots = (size_t)table->sets * RLR_TABLE_WAYS;

    for (size_t i = 0; i < slots; i++) {
        atomic_store_explicit(&table->shares[i], 0, memory_order_relaxed);
    }
    for (size_t i = 0; i < slots; i++) {
        uint64_t holder = atomic_load_explicit(&table->slots[i].holder,
                                               memory_order_relaxed);

        if (holder != 0) {
            atomic_fetch_add_explicit(rlr_table_share_counter(table, holder), 1,
                                      memory_order_relaxed);
        }
    }
}

/* Has somebody else made the counters anew, while this thread waited for the
 * lock that comes first? False too if the lock failed. */
static bool is_recounted(const rlr_table_t *table)
{
    bool recounted;

    if (!rlr_table_lock_set(table, 0)) {
        return false;
    }
    recounted = !rlr_table_is_damaged(table);
    rlr_table_unlock_set(table, 0);
    return recounted;
}

/*
 * Makes all counters anew, with all locks held, so that nobody changes a
 * holder. Decisions about known keys take no lock and go on; new keys wait for
 * the walk (1 ms for 65,536 slots, 2 s for the 16,777,216 of the largest
 * table), which one of them makes for all. A process that dies on the way
 * leaves its locks, and the mark, to the next one, who begins again. False: a
 * lock failed.
 */
static bool recount(const rlr_table_t *table)
{
    if (is_recounted(table)) {
        return true;
    }
    if (!lock_all_sets(table)) {
        return false;
    }
    if (rlr_table_is_damaged(table)) {
        count_all_locked(table);
        rlr_table_set_damaged(table, false);
    }
    unlock_all_sets(table);
    return true;
}

/* ---- The locks of keys ---- */

/* The locks that one or two keys need, each once, in rising order. */
typedef struct locks_t {
    uint32_t count;
    uint32_t index[2 * RLR_TABLE_CHOICES];
} locks_t;

static void add_lock(locks_t *locks, uint32_t index)
{
    uint32_t place = 0;

    while (place < locks->count && locks->index[place] < index) {
        place++;
    }
    if (place < locks->count && locks->index[place] == index) {
        return;
    }
    for (uint32_t i = locks->count; i > place; i--) {
        locks->index[i] = locks->index[i - 1];
    }
    locks->index[place] = index;
    locks->count++;
}

static void list_locks(locks_t *locks, const rlr_table_key_t *key,
                       const rlr_table_key_t *other)
{
    locks->count = 0;
    for (uint32_t i = 0; i < RLR_TABLE_CHOICES; i++) {
        add_lock(locks, key->sets[i] % RLR_TABLE_SET_LOCKS);
        if (other != NULL) {
            add_lock(locks, other->sets[i] % RLR_TABLE_SET_LOCKS);
        }
    }
}

static void unlock_listed(const rlr_table_t *table, const locks_t *locks,
                          uint32_t count)
{
    while (count > 0) {
        rlr_table_unlock_set(table, locks->index[--count]);
    }
}

static bool lock_listed(const rlr_table_t *table, const locks_t *locks)
{
    for (uint32_t i = 0; i < locks->count; i++) {
        if (!rlr_table_lock_set(table, locks->index[i])) {
            unlock_listed(table, locks, i);
            return false;
        }
    }
    return true;
}

bool rlr_table_lock_keys(const rlr_table_t *table, const rlr_table_key_t *key,
                         const rlr_table_key_t *other)
{
    locks_t locks;

    list_locks(&locks, key, other);
    for (;;) {
        if (!lock_listed(table, &locks)) {
            return false;
        }
        if (!rlr_table_is_damaged(table)) {
            return true;
        }
        unlock_listed(table, &locks, locks.count);
        if (!recount(table)) {
            return false;
        }
    }
}

void rlr_table_unlock_keys(const rlr_table_t *table, const rlr_table_key_t *key,
                           const rlr_table_key_t *other)
{
    locks_t locks;

    list_locks(&locks, key, other);
    unlock_listed(table, &locks, locks.count);
}

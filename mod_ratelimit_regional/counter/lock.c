/* SPDX-License-Identifier: Apache-2.0 */
/* Takes, recovers and releases the locks of a segment. */
#include "lock.h"

#include <errno.h>

#include "mutex.h"
#include "repair_state.h"

#define REPAIR_LOCK (RLR_LOCKS - 1)

/* Waits of one second each for a lock; several, since the whole machine may
 * have been suspended. */
#define WAITS 3

/* Whether the lock is held after rlr_mutex_take() or a trylock; recovers the
 * lock of a dead owner. */
static bool is_held(const rlr_table_t *table, uint32_t index, int rv)
{
    if (rv == EOWNERDEAD) {
        /* First: if this process dies before the next line, the next owner
         * repeats it. */
        rlr_repair_state_request(table);
        rv = pthread_mutex_consistent(&table->locks[index].mutex);
    }
    return rv == 0;
}

static bool lock(const rlr_table_t *table, uint32_t index)
{
    return is_held(table, index,
                   rlr_mutex_take(&table->locks[index].mutex, WAITS));
}

static bool try_lock(const rlr_table_t *table, uint32_t index)
{
    return is_held(table, index,
                   pthread_mutex_trylock(&table->locks[index].mutex));
}

static void unlock(const rlr_table_t *table, uint32_t index)
{
    pthread_mutex_unlock(&table->locks[index].mutex);
}

bool rlr_lock_set(const rlr_table_t *table, uint32_t set)
{
    return lock(table, set % RLR_SET_LOCKS);
}

bool rlr_lock_try_set(const rlr_table_t *table, uint32_t set)
{
    return try_lock(table, set % RLR_SET_LOCKS);
}

void rlr_unlock_set(const rlr_table_t *table, uint32_t set)
{
    unlock(table, set % RLR_SET_LOCKS);
}

bool rlr_lock_overflow(const rlr_table_t *table, uint32_t overflow)
{
    return lock(table, RLR_SET_LOCKS + overflow);
}

void rlr_unlock_overflow(const rlr_table_t *table, uint32_t overflow)
{
    unlock(table, RLR_SET_LOCKS + overflow);
}

bool rlr_lock_try_repair(const rlr_table_t *table)
{
    return try_lock(table, REPAIR_LOCK);
}

void rlr_unlock_repair(const rlr_table_t *table)
{
    unlock(table, REPAIR_LOCK);
}

/* ---- The locks of keys ---- */

/* The locks of one or two keys, each once, in ascending order. */
typedef struct locks_t {
    uint32_t count;
    uint32_t index[2 * RLR_CHOICES];
} locks_t;

static void add_lock(locks_t *locks, uint32_t index)
{
    uint32_t at = 0;

    while (at < locks->count && locks->index[at] < index) {
        at++;
    }
    if (at < locks->count && locks->index[at] == index) {
        return;
    }
    for (uint32_t i = locks->count; i > at; i--) {
        locks->index[i] = locks->index[i - 1];
    }
    locks->index[at] = index;
    locks->count++;
}

static void list_locks(locks_t *locks, const rlr_table_key_t *key,
                       const rlr_table_key_t *other)
{
    locks->count = 0;
    for (uint32_t i = 0; i < RLR_CHOICES; i++) {
        add_lock(locks, key->sets[i] % RLR_SET_LOCKS);
        if (other != NULL) {
            add_lock(locks, other->sets[i] % RLR_SET_LOCKS);
        }
    }
}

static void unlock_listed(const rlr_table_t *table, const locks_t *locks,
                          uint32_t count)
{
    while (count > 0) {
        rlr_unlock_set(table, locks->index[--count]);
    }
}

static bool lock_listed(const rlr_table_t *table, const locks_t *locks)
{
    for (uint32_t i = 0; i < locks->count; i++) {
        if (!rlr_lock_set(table, locks->index[i])) {
            unlock_listed(table, locks, i);
            return false;
        }
    }
    return true;
}

bool rlr_lock_keys(const rlr_table_t *table, const rlr_table_key_t *key,
                   const rlr_table_key_t *other)
{
    locks_t locks;

    list_locks(&locks, key, other);
    return lock_listed(table, &locks);
}

void rlr_unlock_keys(const rlr_table_t *table, const rlr_table_key_t *key,
                     const rlr_table_key_t *other)
{
    locks_t locks;

    list_locks(&locks, key, other);
    unlock_listed(table, &locks, locks.count);
}

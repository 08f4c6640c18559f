/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a segment; see table_lock.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_mutex_clocklock() */
#endif
#include "lock.h"

#include <errno.h>
#include <time.h>

#define REPAIR_LOCK (RLR_TABLE_LOCKS - 1)

/* Of a second each, to wait for a lock; more than one, since a whole machine
 * may be stopped for longer than that. */
#define TURNS 3

/* Waits for the lock, a second at most; the thread sanitizer of some compilers
 * does not see that it is taken here. */
static int take_soon(pthread_mutex_t *mutex)
{
#if defined(__SANITIZE_THREAD__)
    return pthread_mutex_lock(mutex);
#else
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
#endif
}

/*
 * Takes the lock, and never sleeps for it longer than a second at a time. An
 * unlock wakes one thread that waits. If another thread takes the lock before
 * that one runs, and the process of that one is killed then, neither the kernel
 * nor the C library wakes the next: it would sleep beside a free lock until
 * somebody else has to wait for the same one. It gives up after some turns: a
 * process that is stopped with a lock must not stop all others one by one.
 */
static int take(pthread_mutex_t *mutex)
{
    int rv = pthread_mutex_trylock(mutex);

    for (int i = 0; i < TURNS && (rv == EBUSY || rv == ETIMEDOUT); i++) {
        rv = take_soon(mutex);
    }
    return rv;
}

/* What take() or a trylock said of the lock; true if it is held now. */
static bool has_taken(const rlr_table_t *table, uint32_t index, int rv)
{
    if (rv == EOWNERDEAD) {
        /* First: who dies before the next line leaves it to the next one. */
        rlr_table_mark_damaged(table);
        rv = pthread_mutex_consistent(&table->locks[index].mutex);
    }
    return rv == 0;
}

static bool lock(const rlr_table_t *table, uint32_t index)
{
    return has_taken(table, index, take(&table->locks[index].mutex));
}

static bool try_lock(const rlr_table_t *table, uint32_t index)
{
    return has_taken(table, index,
                     pthread_mutex_trylock(&table->locks[index].mutex));
}

static void unlock(const rlr_table_t *table, uint32_t index)
{
    pthread_mutex_unlock(&table->locks[index].mutex);
}

bool rlr_table_lock_set(const rlr_table_t *table, uint32_t set)
{
    return lock(table, set % RLR_TABLE_SET_LOCKS);
}

bool rlr_table_try_lock_set(const rlr_table_t *table, uint32_t set)
{
    return try_lock(table, set % RLR_TABLE_SET_LOCKS);
}

void rlr_table_unlock_set(const rlr_table_t *table, uint32_t set)
{
    unlock(table, set % RLR_TABLE_SET_LOCKS);
}

bool rlr_table_lock_group(const rlr_table_t *table, uint32_t group)
{
    return lock(table, RLR_TABLE_SET_LOCKS + group);
}

void rlr_table_unlock_group(const rlr_table_t *table, uint32_t group)
{
    unlock(table, RLR_TABLE_SET_LOCKS + group);
}

bool rlr_table_try_lock_repair(const rlr_table_t *table)
{
    return try_lock(table, REPAIR_LOCK);
}

void rlr_table_unlock_repair(const rlr_table_t *table)
{
    unlock(table, REPAIR_LOCK);
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
    return lock_listed(table, &locks);
}

void rlr_table_unlock_keys(const rlr_table_t *table, const rlr_table_key_t *key,
                           const rlr_table_key_t *other)
{
    locks_t locks;

    list_locks(&locks, key, other);
    unlock_listed(table, &locks, locks.count);
}

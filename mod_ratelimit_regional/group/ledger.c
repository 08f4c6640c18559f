/* SPDX-License-Identifier: Apache-2.0 */
/* The layout and the locks of memberships and leases. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_mutex_clocklock() */
#endif
#include "ledger.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

/* Leases with the same hash are in one set. */
#define WAYS 8U
/* Locks of leases, per partition. */
#define STRIPES 16U
/* The longest time between the starts of two partitions. */
#define START_MS 10000U

typedef struct lock_t {
    pthread_mutex_t mutex;
} __attribute__((aligned(64))) lock_t;

struct rlr_partition_t {
    lock_t lock;
    rlr_ledger_state_t state;
    _Atomic uint64_t lost_until_ms;
    lock_t stripes[STRIPES];
};

typedef struct set_t {
    rlr_lease_t leases[WAYS];
} set_t;

struct rlr_ledger_memory_t {
    unsigned char id[RLR_STORE_ID_BYTES];
    uint32_t sets; /* per partition */
    _Atomic uint64_t warned_ms[RLR_LEDGER_WARNINGS];
    _Atomic uint64_t started_ms; /* the last start that was logged */
    rlr_stats_t stats;
    rlr_wait_slot_t wait_slots[RLR_WAIT_SLOTS_MAX];
    rlr_partition_t partitions[RLR_LEDGER_PARTITIONS];
    set_t all_sets[];
};

static uint32_t count_sets(uint32_t keys)
{
    return keys / (WAYS * RLR_LEDGER_PARTITIONS) + 1;
}

size_t rlr_ledger_size(uint32_t keys)
{
    return sizeof(struct rlr_ledger_memory_t)
        + (size_t)count_sets(keys) * RLR_LEDGER_PARTITIONS * sizeof(set_t);
}

static bool make_lock(lock_t *lock)
{
    pthread_mutexattr_t attributes;
    bool made = pthread_mutexattr_init(&attributes) == 0
        && pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED)
            == 0
        && pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0
        && pthread_mutex_init(&lock->mutex, &attributes) == 0;

    pthread_mutexattr_destroy(&attributes);
    return made;
}

static bool make_partition(rlr_partition_t *partition)
{
    bool made = make_lock(&partition->lock);

    rlr_member_init(&partition->state.member);
    for (uint32_t i = 0; made && i < STRIPES; i++) {
        made = make_lock(&partition->stripes[i]);
    }
    return made;
}

bool rlr_ledger_create(rlr_ledger_t *ledger, void *memory, uint32_t keys,
                       const unsigned char *id)
{
    bool made = true;

    ledger->memory = memory;
    memcpy(ledger->memory->id, id, sizeof(ledger->memory->id));
    ledger->memory->sets = count_sets(keys);
    for (uint32_t i = 0; made && i < RLR_LEDGER_PARTITIONS; i++) {
        made = make_partition(&ledger->memory->partitions[i]);
    }
    return made;
}

void rlr_ledger_attach(rlr_ledger_t *ledger, void *memory)
{
    ledger->memory = memory;
}

const unsigned char *rlr_ledger_id(const rlr_ledger_t *ledger)
{
    return ledger->memory->id;
}

bool rlr_ledger_warns(const rlr_ledger_t *ledger, rlr_ledger_warning_t warning,
                      uint64_t now_ms)
{
    _Atomic uint64_t *at = &ledger->memory->warned_ms[warning];
    uint64_t warned_ms = atomic_load(at);

    return (warned_ms == 0 || now_ms >= warned_ms + 60000)
        && atomic_compare_exchange_strong(at, &warned_ms, now_ms);
}

bool rlr_ledger_is_new_start(const rlr_ledger_t *ledger, uint64_t at_ms)
{
    _Atomic uint64_t *at = &ledger->memory->started_ms;
    uint64_t before = atomic_load(at);

    /* Partitions start within some seconds. */
    return at_ms > before + START_MS
        && atomic_compare_exchange_strong(at, &before, at_ms);
}

rlr_stats_t *rlr_ledger_stats(const rlr_ledger_t *ledger)
{
    return &ledger->memory->stats;
}

rlr_wait_slot_t *rlr_ledger_wait_slots(const rlr_ledger_t *ledger)
{
    return ledger->memory->wait_slots;
}

/* ---- Locks ---- */

/* Returns 0, EOWNERDEAD with the lock held, or another error. Waits for a
 * second: a process that is stopped with a lock must not stop all others. */
static int take(lock_t *lock)
{
#if defined(__SANITIZE_THREAD__)
    return pthread_mutex_lock(&lock->mutex);
#else
    int rv = pthread_mutex_trylock(&lock->mutex);
    struct timespec until;

    if (rv == EBUSY) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        rv = pthread_mutex_clocklock(&lock->mutex, CLOCK_MONOTONIC, &until);
    }
    return rv;
#endif
}

static rlr_partition_t *get_partition(const rlr_ledger_t *ledger, uint32_t i)
{
    return &ledger->memory->partitions[i];
}

rlr_ledger_state_t *rlr_ledger_lock(const rlr_ledger_t *ledger,
                                    uint32_t partition, uint64_t now_ms)
{
    rlr_partition_t *part = get_partition(ledger, partition);
    int rv = take(&part->lock);
    uint64_t lost_until_ms;

    if (rv == EOWNERDEAD) {
        rlr_member_recover(&part->state.member, now_ms);
        part->state.alone_until_ms = 0;
        rv = pthread_mutex_consistent(&part->lock.mutex);
    }
    if (rv != 0) {
        return NULL;
    }
    lost_until_ms = atomic_load(&part->lost_until_ms);
    if (lost_until_ms > part->state.member.lost_until_ms) {
        part->state.member.lost_until_ms = lost_until_ms;
    }
    return &part->state;
}

void rlr_ledger_unlock(const rlr_ledger_t *ledger, uint32_t partition)
{
    pthread_mutex_unlock(&get_partition(ledger, partition)->lock.mutex);
}

void rlr_ledger_lose(const rlr_ledger_t *ledger, uint32_t partition,
                     uint64_t until_ms)
{
    _Atomic uint64_t *lost = &get_partition(ledger, partition)->lost_until_ms;
    uint64_t before = atomic_load(lost);

    while (before < until_ms
           && !atomic_compare_exchange_weak(lost, &before, until_ms)) {
    }
}

void rlr_ledger_sum_up(rlr_ledger_summary_t *summary,
                       const rlr_ledger_t *ledger, uint64_t now_ms)
{
    memset(summary, 0, sizeof(*summary));
    summary->started_ms = -1;
    for (uint32_t i = 0; i < RLR_LEDGER_PARTITIONS; i++) {
        const rlr_ledger_state_t *state = rlr_ledger_lock(ledger, i, now_ms);
        const rlr_store_absent_t *absent;

        if (state == NULL) {
            continue;
        }
        absent = &state->absent;
        summary->starting += !state->member.was_member;
        summary->members += state->member.is_confirmed;
        summary->connected += state->member.is_confirmed
            && now_ms < state->member.heartbeat_until_ms;
        summary->is_refused |= state->status == RLR_STORE_FULL
            || state->status == RLR_STORE_OTHER;
        if (state->member.is_confirmed
            && (absent->missing > summary->absent.missing
                || absent->reserved > summary->absent.reserved)) {
            summary->absent = *absent;
        }
        if (state->member.is_confirmed && absent->started_ms >= 0
            && (summary->started_ms < 0
                || absent->started_ms < summary->started_ms)) {
            summary->started_ms = absent->started_ms;
        }
        rlr_ledger_unlock(ledger, i);
    }
}

/* ---- Leases ---- */

static uint32_t get_set(const rlr_ledger_t *ledger, const unsigned char *key)
{
    uint32_t hash;

    memcpy(&hash, key + 4, sizeof(hash));
    return hash % ledger->memory->sets;
}

static lock_t *get_stripe(const rlr_ledger_t *ledger, uint32_t partition,
                          uint32_t set)
{
    return &get_partition(ledger, partition)->stripes[set % STRIPES];
}

static rlr_lease_t *get_leases(const rlr_ledger_t *ledger, uint32_t partition,
                               uint32_t set)
{
    return ledger->memory
        ->all_sets[(size_t)partition * ledger->memory->sets + set]
        .leases;
}

/* A process has died with the lock: what is left of its leases is not used,
 * and their marks are not known. */
static void recover(const rlr_ledger_t *ledger, uint32_t partition,
                    uint32_t stripe, uint64_t now_ms)
{
    rlr_ledger_lose(ledger, partition,
                    now_ms + 2000 * RLR_LIMIT_INTERVAL_SEC_MAX);
    for (uint32_t set = stripe; set < ledger->memory->sets; set += STRIPES) {
        memset(get_leases(ledger, partition, set), 0, sizeof(set_t));
    }
}

static bool lock_set(const rlr_ledger_t *ledger, uint32_t partition,
                     uint32_t set, uint64_t now_ms)
{
    lock_t *lock = get_stripe(ledger, partition, set);
    int rv = take(lock);

    if (rv == EOWNERDEAD) {
        recover(ledger, partition, set % STRIPES, now_ms);
        rv = pthread_mutex_consistent(&lock->mutex);
    }
    return rv == 0;
}

/* The mark of a lease counts for longer than the lease. */
static bool is_unused(const rlr_lease_t *lease, uint64_t now_ms)
{
    return lease->limit.count == 0
        || (now_ms >= lease->cached_until_ms
            && rlr_lease_live_until(lease, now_ms) == 0);
}

/* The key's lease, or an unused slot; NULL if there is neither. */
static rlr_lease_t *find_slot(rlr_lease_t *leases, const unsigned char *key,
                              uint64_t now_ms)
{
    rlr_lease_t *slot = NULL;

    for (uint32_t i = 0; i < WAYS; i++) {
        if (leases[i].limit.count > 0
            && memcmp(leases[i].key, key, RLR_STORE_KEY_BYTES) == 0) {
            return &leases[i];
        }
        if (slot == NULL && is_unused(&leases[i], now_ms)) {
            slot = &leases[i];
        }
    }
    return slot;
}

rlr_lease_t *rlr_ledger_lock_lease(const rlr_ledger_t *ledger,
                                   const unsigned char *key, rlr_limit_t limit,
                                   uint64_t now_ms)
{
    uint32_t partition = rlr_ledger_partition_of(key);
    uint32_t set = get_set(ledger, key);
    rlr_lease_t *lease;

    if (!lock_set(ledger, partition, set, now_ms)) {
        return NULL;
    }
    lease = find_slot(get_leases(ledger, partition, set), key, now_ms);
    if (lease == NULL) {
        pthread_mutex_unlock(&get_stripe(ledger, partition, set)->mutex);
        return NULL;
    }
    if (lease->limit.count == 0
        || memcmp(lease->key, key, RLR_STORE_KEY_BYTES) != 0) {
        rlr_lease_init(lease, key, limit);
    }
    else if (!rlr_limit_equal(lease->limit, limit)) {
        rlr_lease_change(lease, limit);
    }
    return lease;
}

void rlr_ledger_unlock_lease(const rlr_ledger_t *ledger,
                             const unsigned char *key)
{
    pthread_mutex_unlock(
        &get_stripe(ledger, rlr_ledger_partition_of(key), get_set(ledger, key))
             ->mutex);
}

bool rlr_ledger_may_request(rlr_lease_t *lease, uint64_t now_ms)
{
    if (now_ms < lease->requested_until_ms) {
        return false;
    }
    lease->requested_until_ms = now_ms + 20;
    return true;
}

/* Adds the entries of a lease to a list; returns their number. */
typedef uint32_t add_t(void *out, rlr_lease_t *lease, uint64_t now_ms);

/* A list of entries of all leases of a partition. */
typedef struct listing_t {
    const rlr_ledger_t *ledger;
    uint32_t partition;
    uint64_t now_ms;
    add_t *add;
    uint32_t most;      /* of one lease */
    size_t size;        /* of an entry */
    bool must_be_whole; /* leases that cannot be locked are lost */
} listing_t;

/* Adds the entries of whole sets, from *cursor on, while there is room. */
static uint32_t add_sets(void *out, uint32_t room, uint32_t *cursor,
                         const listing_t *of)
{
    uint32_t count = 0;

    while (*cursor < of->ledger->memory->sets
           && room - count >= WAYS * of->most) {
        uint32_t set = (*cursor)++;
        rlr_lease_t *leases = get_leases(of->ledger, of->partition, set);

        if (!lock_set(of->ledger, of->partition, set, of->now_ms)) {
            if (of->must_be_whole) {
                rlr_ledger_lose(of->ledger, of->partition,
                                of->now_ms + 2000 * RLR_LIMIT_INTERVAL_SEC_MAX);
            }
            continue;
        }
        for (uint32_t i = 0; i < WAYS; i++) {
            count += of->add((char *)out + count * of->size, &leases[i],
                             of->now_ms);
        }
        pthread_mutex_unlock(
            &get_stripe(of->ledger, of->partition, set)->mutex);
    }
    return count;
}

static uint32_t add_marks(void *out, rlr_lease_t *lease, uint64_t now_ms)
{
    return lease->limit.count > 0 ? rlr_lease_report(out, lease, now_ms) : 0;
}

uint32_t rlr_ledger_report(rlr_store_mark_t *out, uint32_t room,
                           uint32_t *cursor, const rlr_ledger_t *ledger,
                           uint32_t partition, uint64_t now_ms)
{
    listing_t marks = {ledger,          partition,    now_ms, add_marks,
                       RLR_LEASE_MARKS, sizeof(*out), true};

    return add_sets(out, room, cursor, &marks);
}

void rlr_ledger_count_leases(rlr_ledger_leases_t *leases,
                             const rlr_ledger_t *ledger, uint64_t now_ms)
{
    uint32_t sets = ledger->memory->sets;

    memset(leases, 0, sizeof(*leases));
    leases->slots = RLR_LEDGER_PARTITIONS * sets * WAYS;
    for (uint32_t n = 0; n < RLR_LEDGER_PARTITIONS * sets; n++) {
        const rlr_lease_t *all = get_leases(ledger, n / sets, n % sets);

        if (!lock_set(ledger, n / sets, n % sets, now_ms)) {
            continue;
        }
        for (uint32_t i = 0; i < WAYS; i++) {
            leases->live += all[i].limit.count > 0
                && rlr_lease_live_until(&all[i], now_ms) > 0;
            if (all[i].left > 0 && now_ms < all[i].until_ms) {
                leases->keys++;
                leases->left += all[i].left;
            }
        }
        pthread_mutex_unlock(&get_stripe(ledger, n / sets, n % sets)->mutex);
    }
}

static uint32_t add_closings(void *out, rlr_lease_t *lease, uint64_t now_ms)
{
    return rlr_lease_close(out, lease, now_ms);
}

uint32_t rlr_ledger_close(rlr_store_item_t *out, uint32_t room,
                          uint32_t *cursor, const rlr_ledger_t *ledger,
                          uint32_t partition, uint64_t now_ms)
{
    listing_t closings = {ledger,       partition,          now_ms,
                          add_closings, RLR_LEASE_CLOSINGS, sizeof(*out),
                          false};

    return add_sets(out, room, cursor, &closings);
}

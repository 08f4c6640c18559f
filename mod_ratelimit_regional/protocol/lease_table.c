/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, claims, recovers and lists leases; shared_layout.h has the layout. */
#include "lease_table.h"

#include <errno.h>
#include <string.h>

#include "../counter/mutex.h"
#include "../counter/siphash.h"
#include "shared_layout.h"

#define NONE UINT32_MAX
/* Not in the tag of a free slot. */
#define IN_USE 16U

/* ---- The hash of a key ---- */

/* The hash of a key: its tag, and the stripe and the sets that may have its
 * lease. */
typedef struct hashed_key_t {
    uint64_t tag;
    uint32_t stripe;
    uint32_t sets[RLR_CHOICES];
} hashed_key_t;

static uint32_t count_stripe_sets(const rlr_shared_t *shared)
{
    return shared->sets / RLR_SHARED_STRIPES;
}

static hashed_key_t hash_key(const rlr_shared_t *shared,
                             const unsigned char *key)
{
    uint32_t sets = count_stripe_sets(shared);
    rlr_siphash_t hash = rlr_siphash_compute(shared->memory->secret, key,
                                             RLR_MESSAGE_KEY_BYTES);
    uint64_t partition = rlr_shared_partition_of(key);
    hashed_key_t hashed = {
        .tag = (hash.first & ~(uint64_t)(RLR_SHARED_PARTITIONS - 1)) | IN_USE
            | partition,
        .stripe = (uint32_t)(hash.first >> 56)};

    rlr_choice_find(hashed.sets, hash.second, sets);
    for (int i = 0; i < RLR_CHOICES; i++) {
        hashed.sets[i] += hashed.stripe * sets;
        __builtin_prefetch(&shared->tags[hashed.sets[i]]);
    }
    return hashed;
}

static uint64_t get_tag(const rlr_shared_t *shared, uint32_t index)
{
    return atomic_load_explicit(
        &shared->tags[index / RLR_WAYS].tag[index % RLR_WAYS],
        memory_order_relaxed);
}

static void set_tag(const rlr_shared_t *shared, uint32_t index, uint64_t tag)
{
    atomic_store_explicit(&shared->tags[index / RLR_WAYS].tag[index % RLR_WAYS],
                          tag, memory_order_relaxed);
}

/* ---- Locks ---- */

static rlr_stripe_t *get_stripe(const rlr_shared_t *shared, uint32_t set)
{
    return &shared->memory->stripes[set / count_stripe_sets(shared)];
}

/* Records the lease that the owner of the lock may write, before it does. */
static void use(rlr_stripe_t *stripe, uint32_t index)
{
    atomic_store_explicit(&stripe->used, index + 1, memory_order_relaxed);
    /* For the compiler: a process that dies has made its writes in this order.
     */
    atomic_signal_fence(memory_order_seq_cst);
}

/* A process has died with the lock: it may have written a part of one lease.
 * That key counts as used up by this host; a key that was being claimed, which
 * may be torn, has no mark yet. */
static void recover(const rlr_shared_t *shared, const rlr_stripe_t *stripe,
                    uint64_t now_ms)
{
    uint32_t used = atomic_load_explicit(&stripe->used, memory_order_relaxed);
    rlr_lease_t *lease;

    if (used == 0) {
        return;
    }
    lease = &shared->leases[used - 1];
    if (lease->limit.count == 0) {
        set_tag(shared, used - 1, 0);
        return;
    }
    rlr_lease_recover(lease, rlr_shared_counted_until(shared, now_ms));
    set_tag(shared, used - 1, hash_key(shared, lease->key).tag);
}

static bool lock_stripe(const rlr_shared_t *shared, rlr_stripe_t *stripe,
                        uint64_t now_ms)
{
    int rv = rlr_mutex_take(&stripe->mutex, 1);

    if (rv == EOWNERDEAD) {
        recover(shared, stripe, now_ms);
        rv = pthread_mutex_consistent(&stripe->mutex);
    }
    return rv == 0;
}

static void unlock_stripe(rlr_stripe_t *stripe)
{
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&stripe->used, 0, memory_order_relaxed);
    pthread_mutex_unlock(&stripe->mutex);
}

void rlr_lease_table_unlock(const rlr_shared_t *shared,
                            const rlr_lease_t *lease)
{
    uint32_t set = (uint32_t)(lease - shared->leases) / RLR_WAYS;

    unlock_stripe(get_stripe(shared, set));
}

/* ---- Slots ---- */

/* The index of the key's lease, or NONE. */
static uint32_t find(const rlr_shared_t *shared, const hashed_key_t *hashed,
                     const unsigned char *key)
{
    for (int i = 0; i < RLR_CHOICES; i++) {
        for (uint32_t way = 0; way < RLR_WAYS; way++) {
            uint32_t index = hashed->sets[i] * RLR_WAYS + way;

            if (get_tag(shared, index) == hashed->tag
                && memcmp(shared->leases[index].key, key, RLR_MESSAGE_KEY_BYTES)
                    == 0) {
                return index;
            }
        }
    }
    return NONE;
}

/* Marks count for longer than their lease, so these alone decide. */
static bool is_unused(const rlr_lease_t *lease, uint64_t now_ms)
{
    return lease->limit.count == 0
        || (now_ms >= lease->cached_until_ms
            && rlr_lease_live_until(lease, now_ms) == 0);
}

/* The unused ways of a set, as bits. */
static uint32_t find_unused(const rlr_shared_t *shared, uint32_t set,
                            uint64_t now_ms)
{
    uint32_t unused = 0;

    for (uint32_t way = 0; way < RLR_WAYS; way++) {
        uint32_t index = set * RLR_WAYS + way;

        unused |= (uint32_t)(get_tag(shared, index) == 0
                             || is_unused(&shared->leases[index], now_ms))
            << way;
    }
    return unused;
}

/* The index of an unused slot for a key, of its emptiest set; or NONE. */
static uint32_t find_slot(const rlr_shared_t *shared,
                          const hashed_key_t *hashed, uint64_t now_ms)
{
    uint32_t unused[RLR_CHOICES];
    int emptiest;

    for (int i = 0; i < RLR_CHOICES; i++) {
        unused[i] = find_unused(shared, hashed->sets[i], now_ms);
    }
    emptiest = rlr_choice_emptiest(unused);
    return unused[emptiest] == 0 ? NONE
                                 : hashed->sets[emptiest] * RLR_WAYS
            + (uint32_t)__builtin_ctz(unused[emptiest]);
}

/* Makes an empty lease in a slot; it can be found once it is complete. */
static void claim(const rlr_shared_t *shared, rlr_stripe_t *stripe,
                  uint32_t index, const hashed_key_t *hashed,
                  const unsigned char *key, rlr_limit_t limit)
{
    set_tag(shared, index, 0);
    use(stripe, index);
    rlr_lease_init(&shared->leases[index], key, limit);
    atomic_signal_fence(memory_order_seq_cst);
    set_tag(shared, index, hashed->tag);
}

rlr_lease_t *rlr_lease_table_lock(const rlr_shared_t *shared,
                                  const unsigned char *key, rlr_limit_t limit,
                                  uint64_t now_ms)
{
    hashed_key_t hashed = hash_key(shared, key);
    rlr_stripe_t *stripe = get_stripe(shared, hashed.sets[0]);
    rlr_lease_t *lease;
    uint32_t index;

    rlr_shared_use_interval(shared, limit.interval_sec);
    if (!lock_stripe(shared, stripe, now_ms)) {
        return NULL;
    }
    index = find(shared, &hashed, key);
    if (index == NONE) {
        index = find_slot(shared, &hashed, now_ms);
        if (index == NONE) {
            unlock_stripe(stripe);
            return NULL;
        }
        claim(shared, stripe, index, &hashed, key, limit);
    }
    use(stripe, index);
    lease = &shared->leases[index];
    if (!rlr_limit_equal(lease->limit, limit)) {
        rlr_lease_change(lease, limit);
    }
    return lease;
}

bool rlr_lease_table_may_request(rlr_lease_t *lease, uint64_t now_ms)
{
    if (now_ms < lease->requested_until_ms) {
        return false;
    }
    lease->requested_until_ms = now_ms + 20;
    return true;
}

/* ---- All leases ---- */

/* Adds the entries of a lease to a list; returns their number. */
typedef uint32_t add_t(void *out, rlr_lease_t *lease, uint64_t now_ms);

/* A list of entries of all leases of a partition. */
typedef struct listing_t {
    const rlr_shared_t *shared;
    uint32_t partition;
    uint64_t now_ms;
    add_t *add;
    uint32_t most;         /* entries of one lease */
    size_t size;           /* bytes of an entry */
    bool must_be_complete; /* leases that cannot be locked are lost */
} listing_t;

static bool is_listed(const listing_t *listing, uint32_t index)
{
    uint64_t tag = get_tag(listing->shared, index);

    return tag != 0 && tag % RLR_SHARED_PARTITIONS == listing->partition;
}

/* Without the lock of the set. No lease with a grant is missed: grants, and the
 * beginning of the list, are made with the lock of the partition. */
static bool has_lease(const listing_t *listing, uint32_t set)
{
    bool has = false;

    for (uint32_t way = 0; way < RLR_WAYS && !has; way++) {
        has = is_listed(listing, set * RLR_WAYS + way);
    }
    return has;
}

/* Adds the entries of a set, which is locked. */
static uint32_t add_set(char *out, const listing_t *listing, uint32_t set)
{
    uint32_t count = 0;

    for (uint32_t way = 0; way < RLR_WAYS; way++) {
        uint32_t index = set * RLR_WAYS + way;

        if (is_listed(listing, index)) {
            use(get_stripe(listing->shared, set), index);
            count += listing->add(out + count * listing->size,
                                  &listing->shared->leases[index],
                                  listing->now_ms);
        }
    }
    return count;
}

/* Adds the entries of whole sets, from *cursor on, while there is room. */
static uint32_t add_sets(void *out, uint32_t room, uint32_t *cursor,
                         const listing_t *listing)
{
    uint32_t count = 0;

    while (*cursor < listing->shared->sets
           && room - count >= RLR_WAYS * listing->most) {
        uint32_t set = (*cursor)++;
        rlr_stripe_t *stripe = get_stripe(listing->shared, set);

        if (!has_lease(listing, set)) {
            continue;
        }
        if (lock_stripe(listing->shared, stripe, listing->now_ms)) {
            count += add_set((char *)out + count * listing->size, listing, set);
            unlock_stripe(stripe);
        }
        else if (listing->must_be_complete) {
            rlr_shared_record_loss(
                listing->shared, listing->partition,
                rlr_shared_counted_until(listing->shared, listing->now_ms));
        }
    }
    return count;
}

static uint32_t add_marks(void *out, rlr_lease_t *lease, uint64_t now_ms)
{
    return rlr_lease_report(out, lease, now_ms);
}

uint32_t rlr_lease_table_report(rlr_message_mark_t *out, uint32_t room,
                                uint32_t *cursor, const rlr_shared_t *shared,
                                uint32_t partition, uint64_t now_ms)
{
    listing_t marks = {shared,          partition,    now_ms, add_marks,
                       RLR_LEASE_MARKS, sizeof(*out), true};

    return add_sets(out, room, cursor, &marks);
}

static uint32_t add_closings(void *out, rlr_lease_t *lease, uint64_t now_ms)
{
    return rlr_lease_close(out, lease, now_ms);
}

uint32_t rlr_lease_table_close(rlr_message_item_t *out, uint32_t room,
                               uint32_t *cursor, const rlr_shared_t *shared,
                               uint32_t partition, uint64_t now_ms)
{
    listing_t closings = {shared,       partition,          now_ms,
                          add_closings, RLR_LEASE_CLOSINGS, sizeof(*out),
                          false};

    return add_sets(out, room, cursor, &closings);
}

static void count_lease(rlr_lease_table_count_t *count,
                        const rlr_lease_t *lease, uint64_t now_ms)
{
    count->live += rlr_lease_live_until(lease, now_ms) > 0;
    if (lease->unused > 0 && now_ms < lease->until_ms) {
        count->keys++;
        count->unused += lease->unused;
    }
}

void rlr_lease_table_count(rlr_lease_table_count_t *count,
                           const rlr_shared_t *shared, uint64_t now_ms)
{
    memset(count, 0, sizeof(*count));
    count->slots = shared->sets * RLR_WAYS;
    for (uint32_t set = 0; set < shared->sets; set++) {
        rlr_stripe_t *stripe = get_stripe(shared, set);

        if (!lock_stripe(shared, stripe, now_ms)) {
            continue;
        }
        for (uint32_t way = 0; way < RLR_WAYS; way++) {
            uint32_t index = set * RLR_WAYS + way;

            if (get_tag(shared, index) != 0) {
                count_lease(count, &shared->leases[index], now_ms);
            }
        }
        unlock_stripe(stripe);
    }
}

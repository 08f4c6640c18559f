/* SPDX-License-Identifier: Apache-2.0 */
/* The layout and the locks of memberships and leases. */
#include "shared_layout.h"

#include <errno.h>
#include <string.h>

#include "../counter/mutex.h"
#include "period.h"

/* "RLRLEDGR", and a number that changes with the layout and its meaning. */
#define SHARED_MAGIC  0x524744454c524c52U
#define SHARED_LAYOUT 5U

/* The longest time between the starts of two partitions. */
#define START_MS 10000U

/* ---- Memory ---- */

/* Two sets of each stripe for the differences between stripes. */
static uint32_t count_sets(uint32_t keys)
{
    return (keys / (RLR_WAYS * RLR_SHARED_STRIPES) + 2) * RLR_SHARED_STRIPES;
}

static size_t get_size(uint32_t sets)
{
    return sizeof(struct rlr_shared_memory_t)
        + (size_t)sets
        * (sizeof(struct rlr_lease_tags_t) + RLR_WAYS * sizeof(rlr_lease_t));
}

size_t rlr_shared_size(uint32_t keys)
{
    return get_size(count_sets(keys));
}

static void set_parts(rlr_shared_t *shared, void *memory, uint32_t sets)
{
    shared->memory = memory;
    shared->generation = 0;
    shared->table = 0;
    shared->store = 0;
    shared->sets = sets;
    shared->tags = (struct rlr_lease_tags_t *)(shared->memory + 1);
    shared->leases = (rlr_lease_t *)(shared->tags + sets);
}

bool rlr_shared_create(rlr_shared_t *shared, void *memory, uint32_t keys,
                       const unsigned char *id, const unsigned char *secret)
{
    struct rlr_shared_memory_t *made = memory;
    bool has_mutexes = true;

    set_parts(shared, memory, count_sets(keys));
    memcpy(made->id, id, sizeof(made->id));
    memcpy(made->secret, secret, sizeof(made->secret));
    for (uint32_t i = 0; has_mutexes && i < RLR_SHARED_PARTITIONS; i++) {
        rlr_member_init(&made->partitions[i].state.member);
        has_mutexes = rlr_mutex_init(&made->partitions[i].mutex);
    }
    for (uint32_t i = 0; has_mutexes && i < RLR_SHARED_STRIPES; i++) {
        has_mutexes = rlr_mutex_init(&made->stripes[i].mutex);
    }
    if (has_mutexes) {
        rlr_header_finish(&made->header, SHARED_MAGIC, SHARED_LAYOUT,
                          shared->sets, get_size(shared->sets));
    }
    return has_mutexes;
}

bool rlr_shared_attach(rlr_shared_t *shared, void *memory, size_t size)
{
    const rlr_header_t *header = memory;

    if (!rlr_header_fits(header, SHARED_MAGIC, SHARED_LAYOUT, size)
        || header->sets < RLR_SHARED_STRIPES
        || header->sets % RLR_SHARED_STRIPES != 0
        || header->size != get_size(header->sets)) {
        return false;
    }
    set_parts(shared, memory, header->sets);
    shared->generation = atomic_fetch_add(&shared->memory->generation, 1) + 1;
    atomic_store(&shared->memory->last_ms[RLR_SHARED_RULES], 0);
    shared->table = atomic_load(&shared->memory->tables);
    shared->store = atomic_load(&shared->memory->store);
    return true;
}

void rlr_shared_change_table(rlr_shared_t *shared)
{
    shared->table = atomic_fetch_add(&shared->memory->tables, 1) + 1;
}

bool rlr_shared_has_table(const rlr_shared_t *shared)
{
    return atomic_load(&shared->memory->tables) == shared->table;
}

void rlr_shared_use_store(rlr_shared_t *shared, uint64_t store)
{
    shared->store = store;
    atomic_store(&shared->memory->store, store);
}

bool rlr_shared_has_store(const rlr_shared_t *shared)
{
    return atomic_load(&shared->memory->store) == shared->store;
}

const unsigned char *rlr_shared_id(const rlr_shared_t *shared)
{
    return shared->memory->id;
}

bool rlr_shared_is_due(const rlr_shared_t *shared, rlr_shared_event_t event,
                       uint64_t now_ms)
{
    _Atomic uint64_t *at = &shared->memory->last_ms[event];
    uint64_t last_ms = atomic_load(at);

    if (event == RLR_SHARED_RULES
        && atomic_load(&shared->memory->generation) != shared->generation) {
        return false;
    }
    return (last_ms == 0 || now_ms >= last_ms + 60000)
        && atomic_compare_exchange_strong(at, &last_ms, now_ms);
}

bool rlr_shared_is_new_start(const rlr_shared_t *shared, uint64_t at_ms)
{
    _Atomic uint64_t *at = &shared->memory->started_ms;
    uint64_t before = atomic_load(at);

    /* Partitions start within some seconds. */
    return at_ms > before + START_MS
        && atomic_compare_exchange_strong(at, &before, at_ms);
}

rlr_stats_t *rlr_shared_stats(const rlr_shared_t *shared)
{
    return &shared->memory->stats;
}

rlr_wait_slots_t rlr_shared_wait_slots(const rlr_shared_t *shared)
{
    return (rlr_wait_slots_t){shared->memory->wait_slots, RLR_WAIT_SLOTS_MAX,
                              &shared->memory->wait_recent};
}

/* ---- Partitions ---- */

/* Takes over the change of the table since the lock was held: it does not wait
 * for the lock. */
static void catch_up_locked(rlr_partition_t *part, const rlr_shared_t *shared)
{
    uint32_t tables = atomic_load(&shared->memory->tables);

    if (part->tables != tables) {
        part->tables = tables;
        rlr_member_change_table(&part->state.member);
    }
}

static rlr_partition_state_t *lock(const rlr_shared_t *shared,
                                   uint32_t partition, int waits,
                                   uint64_t now_ms)
{
    rlr_partition_t *part = rlr_shared_layout_partition(shared, partition);
    int rv = rlr_mutex_take(&part->mutex, waits);
    uint64_t lost_until_ms;

    if (rv == EOWNERDEAD) {
        rlr_member_recover(&part->state.member,
                           rlr_shared_counted_until(shared, now_ms));
        part->state.next_call_ms = 0;
        rv = pthread_mutex_consistent(&part->mutex);
    }
    if (rv != 0) {
        return NULL;
    }
    catch_up_locked(part, shared);
    lost_until_ms = atomic_load(&part->lost_until_ms);
    if (lost_until_ms > part->state.member.lost_until_ms) {
        part->state.member.lost_until_ms = lost_until_ms;
    }
    return &part->state;
}

rlr_partition_state_t *rlr_shared_lock(const rlr_shared_t *shared,
                                       uint32_t partition, uint64_t now_ms)
{
    return lock(shared, partition, 1, now_ms);
}

rlr_partition_state_t *rlr_shared_try_lock(const rlr_shared_t *shared,
                                           uint32_t partition, uint64_t now_ms)
{
    return lock(shared, partition, 0, now_ms);
}

rlr_partition_state_t *rlr_shared_get_locked(const rlr_shared_t *shared,
                                             uint32_t partition)
{
    return &rlr_shared_layout_partition(shared, partition)->state;
}

void rlr_shared_unlock(const rlr_shared_t *shared, uint32_t partition)
{
    pthread_mutex_unlock(
        &rlr_shared_layout_partition(shared, partition)->mutex);
}

void rlr_shared_use_interval(const rlr_shared_t *shared, uint32_t interval_sec)
{
    _Atomic uint32_t *longest = &shared->memory->longest_sec;
    uint32_t before = atomic_load_explicit(longest, memory_order_relaxed);

    while (before < interval_sec
           && !atomic_compare_exchange_weak(longest, &before, interval_sec)) {
    }
}

uint64_t rlr_shared_counted_until(const rlr_shared_t *shared, uint64_t now_ms)
{
    return now_ms
        + rlr_period_counted(atomic_load(&shared->memory->longest_sec));
}

void rlr_shared_record_loss(const rlr_shared_t *shared, uint32_t partition,
                            uint64_t until_ms)
{
    _Atomic uint64_t *lost = &rlr_shared_layout_partition(shared, partition)
                                  ->lost_until_ms;
    uint64_t before = atomic_load(lost);

    while (before < until_ms
           && !atomic_compare_exchange_weak(lost, &before, until_ms)) {
    }
}

void rlr_shared_sum_up(rlr_shared_summary_t *summary,
                       const rlr_shared_t *shared, bool waits, uint64_t now_ms)
{
    memset(summary, 0, sizeof(*summary));
    summary->started_ms = -1;
    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        const rlr_partition_state_t *state = lock(shared, i, waits, now_ms);
        const rlr_message_group_t *group;

        if (state == NULL) {
            continue;
        }
        group = &state->group;
        summary->starting += !state->member.was_member;
        summary->members += state->member.is_confirmed;
        summary->connected += state->member.is_confirmed
            && now_ms < state->member.heartbeat_until_ms;
        summary->is_refused |= state->status == RLR_MESSAGE_FULL
            || state->status == RLR_MESSAGE_OTHER;
        if (state->member.is_confirmed
            && (group->missing > summary->group.missing
                || group->reserved > summary->group.reserved)) {
            summary->group = *group;
        }
        if (state->member.is_confirmed && group->started_ms >= 0
            && (summary->started_ms < 0
                || group->started_ms < summary->started_ms)) {
            summary->started_ms = group->started_ms;
        }
        rlr_shared_unlock(shared, i);
    }
}

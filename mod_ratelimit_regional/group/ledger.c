/* SPDX-License-Identifier: Apache-2.0 */
/* The layout and the locks of memberships and leases. */
#include "ledger_layout.h"

#include <errno.h>
#include <string.h>

#include "../counter/mutex.h"
#include "period.h"

/* "RLRLEDGR", and a number that changes with the layout and its meaning. */
#define LEDGER_MAGIC  0x524744454c524c52U
#define LEDGER_LAYOUT 4U

/* The longest time between the starts of two partitions. */
#define START_MS 10000U

/* ---- Memory ---- */

/* Two sets of each stripe for the differences between stripes. */
static uint32_t count_sets(uint32_t keys)
{
    return (keys / (RLR_WAYS * RLR_LEDGER_STRIPES) + 2) * RLR_LEDGER_STRIPES;
}

static size_t get_size(uint32_t sets)
{
    return sizeof(struct rlr_ledger_memory_t)
        + (size_t)sets
        * (sizeof(struct rlr_lease_tags_t) + RLR_WAYS * sizeof(rlr_lease_t));
}

size_t rlr_ledger_size(uint32_t keys)
{
    return get_size(count_sets(keys));
}

static void set_parts(rlr_ledger_t *ledger, void *memory, uint32_t sets)
{
    ledger->memory = memory;
    ledger->generation = 0;
    ledger->table = 0;
    ledger->store = 0;
    ledger->sets = sets;
    ledger->tags = (struct rlr_lease_tags_t *)(ledger->memory + 1);
    ledger->leases = (rlr_lease_t *)(ledger->tags + sets);
}

bool rlr_ledger_create(rlr_ledger_t *ledger, void *memory, uint32_t keys,
                       const unsigned char *id, const unsigned char *secret)
{
    struct rlr_ledger_memory_t *made = memory;
    bool has_mutexes = true;

    set_parts(ledger, memory, count_sets(keys));
    memcpy(made->id, id, sizeof(made->id));
    memcpy(made->secret, secret, sizeof(made->secret));
    for (uint32_t i = 0; has_mutexes && i < RLR_LEDGER_PARTITIONS; i++) {
        rlr_member_init(&made->partitions[i].state.member);
        has_mutexes = rlr_mutex_init(&made->partitions[i].mutex);
    }
    for (uint32_t i = 0; has_mutexes && i < RLR_LEDGER_STRIPES; i++) {
        has_mutexes = rlr_mutex_init(&made->stripes[i].mutex);
    }
    if (has_mutexes) {
        rlr_header_finish(&made->header, LEDGER_MAGIC, LEDGER_LAYOUT,
                          ledger->sets, get_size(ledger->sets));
    }
    return has_mutexes;
}

bool rlr_ledger_attach(rlr_ledger_t *ledger, void *memory, size_t size)
{
    const rlr_header_t *header = memory;

    if (!rlr_header_fits(header, LEDGER_MAGIC, LEDGER_LAYOUT, size)
        || header->sets < RLR_LEDGER_STRIPES
        || header->sets % RLR_LEDGER_STRIPES != 0
        || header->size != get_size(header->sets)) {
        return false;
    }
    set_parts(ledger, memory, header->sets);
    ledger->generation = atomic_fetch_add(&ledger->memory->generation, 1) + 1;
    atomic_store(&ledger->memory->warned_ms[RLR_LEDGER_RULES], 0);
    ledger->table = atomic_load(&ledger->memory->tables);
    ledger->store = atomic_load(&ledger->memory->store);
    return true;
}

void rlr_ledger_change_table(rlr_ledger_t *ledger)
{
    ledger->table = atomic_fetch_add(&ledger->memory->tables, 1) + 1;
}

bool rlr_ledger_has_table(const rlr_ledger_t *ledger)
{
    return atomic_load(&ledger->memory->tables) == ledger->table;
}

void rlr_ledger_use_store(rlr_ledger_t *ledger, uint64_t store)
{
    ledger->store = store;
    atomic_store(&ledger->memory->store, store);
}

bool rlr_ledger_has_store(const rlr_ledger_t *ledger)
{
    return atomic_load(&ledger->memory->store) == ledger->store;
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

    if (warning == RLR_LEDGER_RULES
        && atomic_load(&ledger->memory->generation) != ledger->generation) {
        return false;
    }
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

rlr_wait_slots_t rlr_ledger_wait_slots(const rlr_ledger_t *ledger)
{
    return (rlr_wait_slots_t){ledger->memory->wait_slots, RLR_WAIT_SLOTS_MAX,
                              &ledger->memory->wait_recent};
}

/* ---- Partitions ---- */

/* Takes over the change of the table since the lock was held: it does not wait
 * for the lock. */
static void catch_up_locked(rlr_partition_t *part, const rlr_ledger_t *ledger)
{
    uint32_t tables = atomic_load(&ledger->memory->tables);

    if (part->tables != tables) {
        part->tables = tables;
        rlr_member_change_table(&part->state.member);
    }
}

static rlr_ledger_state_t *lock(const rlr_ledger_t *ledger, uint32_t partition,
                                int waits, uint64_t now_ms)
{
    rlr_partition_t *part = rlr_ledger_partition(ledger, partition);
    int rv = rlr_mutex_take(&part->mutex, waits);
    uint64_t lost_until_ms;

    if (rv == EOWNERDEAD) {
        rlr_member_recover(&part->state.member,
                           rlr_ledger_counted_until(ledger, now_ms));
        part->state.alone_until_ms = 0;
        rv = pthread_mutex_consistent(&part->mutex);
    }
    if (rv != 0) {
        return NULL;
    }
    catch_up_locked(part, ledger);
    lost_until_ms = atomic_load(&part->lost_until_ms);
    if (lost_until_ms > part->state.member.lost_until_ms) {
        part->state.member.lost_until_ms = lost_until_ms;
    }
    return &part->state;
}

rlr_ledger_state_t *rlr_ledger_lock(const rlr_ledger_t *ledger,
                                    uint32_t partition, uint64_t now_ms)
{
    return lock(ledger, partition, 1, now_ms);
}

rlr_ledger_state_t *rlr_ledger_try_lock(const rlr_ledger_t *ledger,
                                        uint32_t partition, uint64_t now_ms)
{
    return lock(ledger, partition, 0, now_ms);
}

void rlr_ledger_unlock(const rlr_ledger_t *ledger, uint32_t partition)
{
    pthread_mutex_unlock(&rlr_ledger_partition(ledger, partition)->mutex);
}

void rlr_ledger_use_interval(const rlr_ledger_t *ledger, uint32_t interval_sec)
{
    _Atomic uint32_t *longest = &ledger->memory->longest_sec;
    uint32_t before = atomic_load_explicit(longest, memory_order_relaxed);

    while (before < interval_sec
           && !atomic_compare_exchange_weak(longest, &before, interval_sec)) {
    }
}

uint64_t rlr_ledger_counted_until(const rlr_ledger_t *ledger, uint64_t now_ms)
{
    return now_ms
        + rlr_period_counted(atomic_load(&ledger->memory->longest_sec));
}

void rlr_ledger_lose(const rlr_ledger_t *ledger, uint32_t partition,
                     uint64_t until_ms)
{
    _Atomic uint64_t *lost = &rlr_ledger_partition(ledger, partition)
                                  ->lost_until_ms;
    uint64_t before = atomic_load(lost);

    while (before < until_ms
           && !atomic_compare_exchange_weak(lost, &before, until_ms)) {
    }
}

void rlr_ledger_sum_up(rlr_ledger_summary_t *summary,
                       const rlr_ledger_t *ledger, bool waits, uint64_t now_ms)
{
    memset(summary, 0, sizeof(*summary));
    summary->started_ms = -1;
    for (uint32_t i = 0; i < RLR_LEDGER_PARTITIONS; i++) {
        const rlr_ledger_state_t *state = lock(ledger, i, waits, now_ms);
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

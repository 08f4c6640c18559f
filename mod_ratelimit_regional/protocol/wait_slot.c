/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client takes a slot only while more are free than it has. So one client
 * holds half of them at most, two hold a third each, and there is always a
 * slot for a client that has none until there are more clients than slots.
 *
 * As many clients as there are slots could still take all of them. So frequent
 * clients, which had more than a 32nd of the last waits each, have half of the
 * slots together, as long as other clients come.
 *
 * A brief wait needs no slot, except for a very frequent client, which would
 * delay the replies to others: it had more than an eighth of many recent waits.
 */
#include "wait_slot.h"

#include <stddef.h>

/* Bits of a holder that are the client; the others are milliseconds. */
#define CLIENT_BITS 24
#define CLIENT_MASK ((1U << CLIENT_BITS) - 1)

/* More of the last waits than this: a frequent client, and a very frequent
 * one. */
#define FREQUENT      (RLR_WAIT_RECENT / 32)
#define VERY_FREQUENT (RLR_WAIT_RECENT / 8)
/* All recent waits in less than this are many. */
#define MANY_MS 500U
/* Half is reserved for this long after a client that is not frequent. */
#define RESERVE_MS 1000U
/* The store counts as slow for this long after its last late answer. */
#define SLOW_MS 1000U

static bool is_free(uint64_t holder, uint64_t now_ms)
{
    return holder >> CLIENT_BITS <= now_ms;
}

/* Replaces the holder of the first free slot. Another thread may be faster:
 * then the next one. */
static bool take_free(rlr_wait_slot_hold_t *hold, const rlr_wait_slots_t *slots,
                      uint64_t holder, uint64_t now_ms)
{
    for (uint32_t i = 0; i < slots->count; i++) {
        rlr_wait_slot_t *slot = &slots->all[i];
        uint64_t before = atomic_load_explicit(&slot->holder,
                                               memory_order_relaxed);

        if (is_free(before, now_ms)
            && atomic_compare_exchange_strong(&slot->holder, &before, holder)) {
            hold->slot = slot;
            hold->holder = holder;
            return true;
        }
    }
    return false;
}

/* How many of the last waits were those of the client. */
static uint32_t count_recent(const rlr_wait_recent_t *recent, uint32_t client)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < RLR_WAIT_RECENT; i++) {
        uint64_t wait = atomic_load_explicit(&recent->waits[i],
                                             memory_order_relaxed);

        count += wait != 0 && (wait & CLIENT_MASK) == client;
    }
    return count;
}

/* Reserves half of the slots, if the client is not frequent. */
static void reserve(rlr_wait_recent_t *recent, uint32_t client, uint32_t count,
                    uint64_t now_ms)
{
    if (count <= FREQUENT) {
        atomic_store_explicit(&recent->reserved,
                              (now_ms + RESERVE_MS) << CLIENT_BITS | client,
                              memory_order_relaxed);
    }
}

/* Whether half is reserved for another client. */
static bool is_reserved(const rlr_wait_recent_t *recent, uint32_t client,
                        uint64_t now_ms)
{
    uint64_t reserved = atomic_load_explicit(&recent->reserved,
                                             memory_order_relaxed);

    return !is_free(reserved, now_ms) && (reserved & CLIENT_MASK) != client;
}

/* How many slots must stay free for others. */
static uint32_t get_reserve(const rlr_wait_slots_t *slots, uint32_t client,
                            uint64_t now_ms)
{
    uint32_t count = count_recent(slots->recent, client);

    reserve(slots->recent, client, count, now_ms);
    return count > FREQUENT && is_reserved(slots->recent, client, now_ms)
        ? slots->count / 2
        : 0;
}

static void record(rlr_wait_recent_t *recent, uint32_t client, uint64_t now_ms)
{
    uint32_t i = atomic_fetch_add_explicit(&recent->next, 1,
                                           memory_order_relaxed);

    atomic_store_explicit(&recent->waits[i % RLR_WAIT_RECENT],
                          now_ms << CLIENT_BITS | client, memory_order_relaxed);
}

/* Whether the last waits all began within MANY_MS. */
static bool are_many(const rlr_wait_recent_t *recent, uint64_t now_ms)
{
    uint32_t oldest = atomic_load_explicit(&recent->next, memory_order_relaxed)
        % RLR_WAIT_RECENT;
    uint64_t wait = atomic_load_explicit(&recent->waits[oldest],
                                         memory_order_relaxed);

    return wait != 0 && (wait >> CLIENT_BITS) + MANY_MS > now_ms;
}

bool rlr_wait_slot_take(rlr_wait_slot_hold_t *hold,
                        const rlr_wait_slots_t *slots, uint32_t client,
                        uint64_t now_ms, uint64_t until_ms)
{
    uint32_t hash = client & CLIENT_MASK;
    uint64_t holder = until_ms << CLIENT_BITS | hash;
    uint32_t held = 0;
    uint32_t free = 0;

    for (uint32_t i = 0; i < slots->count; i++) {
        uint64_t other = atomic_load_explicit(&slots->all[i].holder,
                                              memory_order_relaxed);

        if (is_free(other, now_ms)) {
            free++;
        }
        else if ((other & CLIENT_MASK) == hash) {
            held++;
        }
    }
    if (free <= get_reserve(slots, hash, now_ms) || held >= free
        || !take_free(hold, slots, holder, now_ms)) {
        return false;
    }
    record(slots->recent, hash, now_ms);
    return true;
}

void rlr_wait_slot_return(const rlr_wait_slot_hold_t *hold)
{
    uint64_t holder = hold->holder;

    if (hold->slot == NULL) {
        return;
    }
    /* After its time another one may have taken it. */
    atomic_compare_exchange_strong(&hold->slot->holder, &holder, 0);
}

/* ---- Brief waits ---- */

bool rlr_wait_slot_may_be_brief(const rlr_wait_slots_t *slots, uint32_t client,
                                uint64_t now_ms)
{
    uint32_t hash = client & CLIENT_MASK;
    uint32_t count = count_recent(slots->recent, hash);

    reserve(slots->recent, hash, count, now_ms);
    if (count > VERY_FREQUENT && are_many(slots->recent, now_ms)
        && is_reserved(slots->recent, hash, now_ms)) {
        return false;
    }
    record(slots->recent, hash, now_ms);
    return true;
}

bool rlr_wait_slot_is_slow(const rlr_wait_slots_t *slots, uint64_t now_ms)
{
    return atomic_load_explicit(&slots->recent->slow_until_ms,
                                memory_order_relaxed)
        > now_ms;
}

void rlr_wait_slot_set_slow(const rlr_wait_slots_t *slots, bool is_slow,
                            uint64_t now_ms)
{
    _Atomic uint64_t *until_ms = &slots->recent->slow_until_ms;
    uint64_t next_ms = is_slow ? now_ms + SLOW_MS : 0;

    /* Read first: it seldom changes, and processes share the line. */
    if (atomic_load_explicit(until_ms, memory_order_relaxed) != next_ms) {
        atomic_store_explicit(until_ms, next_ms, memory_order_relaxed);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client takes a slot only while more are free than it has. So one client
 * holds half of them at most, two hold a third each, and there is always a
 * slot for a client that has none until there are more clients than slots.
 *
 * As many clients as there are slots would still take all from others. So those
 * that got more than a 32nd of the last slots have half of them together,
 * as long as other clients come.
 */
#include "wait_slot.h"

#include <stddef.h>

/* Bits of a holder that are the client; the others are milliseconds. */
#define CLIENT_BITS 24
#define CLIENT_MASK ((1U << CLIENT_BITS) - 1)

/* More of the last slots than this: a frequent client. */
#define FREQUENT (RLR_WAIT_RECENT / 32)
/* Half is reserved for this long after a client that is not. */
#define RESERVE_MS 1000U

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

static bool is_frequent(const rlr_wait_recent_t *recent, uint32_t client)
{
    uint32_t taken = 0;

    for (uint32_t i = 0; i < RLR_WAIT_RECENT; i++) {
        taken += atomic_load_explicit(&recent->clients[i], memory_order_relaxed)
            == client + 1;
    }
    return taken > FREQUENT;
}

/* How many slots must stay free for others. */
static uint32_t get_reserve(const rlr_wait_slots_t *slots, uint32_t client,
                            uint64_t now_ms)
{
    _Atomic uint64_t *until_ms = &slots->recent->reserved_until_ms;

    if (!is_frequent(slots->recent, client)) {
        atomic_store_explicit(until_ms, now_ms + RESERVE_MS,
                              memory_order_relaxed);
        return 0;
    }
    return now_ms < atomic_load_explicit(until_ms, memory_order_relaxed)
        ? slots->count / 2
        : 0;
}

static void record(rlr_wait_recent_t *recent, uint32_t client)
{
    uint32_t i = atomic_fetch_add_explicit(&recent->next, 1,
                                           memory_order_relaxed);

    atomic_store_explicit(&recent->clients[i % RLR_WAIT_RECENT], client + 1,
                          memory_order_relaxed);
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
    record(slots->recent, hash);
    return true;
}

void rlr_wait_slot_return(const rlr_wait_slot_hold_t *hold)
{
    uint64_t holder = hold->holder;

    /* After its time another one may have taken it. */
    atomic_compare_exchange_strong(&hold->slot->holder, &holder, 0);
}

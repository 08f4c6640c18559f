/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client takes a slot only while more are free than it has. So one client
 * holds half of them at most, two hold a third each, and there is always a
 * slot for a client that has none until there are more clients than slots.
 */
#include "wait_slot.h"

#include <stddef.h>

/* Bits of a holder that are the client; the others are milliseconds. */
#define CLIENT_BITS 24
#define CLIENT_MASK ((1U << CLIENT_BITS) - 1)

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

bool rlr_wait_slot_take(rlr_wait_slot_hold_t *hold,
                        const rlr_wait_slots_t *slots, uint32_t client,
                        uint64_t now_ms, uint64_t until_ms)
{
    uint64_t holder = until_ms << CLIENT_BITS | (client & CLIENT_MASK);
    uint32_t held = 0;
    uint32_t free = 0;

    for (uint32_t i = 0; i < slots->count; i++) {
        uint64_t other = atomic_load_explicit(&slots->all[i].holder,
                                              memory_order_relaxed);

        if (is_free(other, now_ms)) {
            free++;
        }
        else if ((other & CLIENT_MASK) == (client & CLIENT_MASK)) {
            held++;
        }
    }
    return held < free && take_free(hold, slots, holder, now_ms);
}

void rlr_wait_slot_return(const rlr_wait_slot_hold_t *hold)
{
    uint64_t holder = hold->holder;

    /* After its time another one may have taken it. */
    atomic_compare_exchange_strong(&hold->slot->holder, &holder, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, widens and charges the shared counters of keys without a slot. */
#include "overflow.h"

#include <stddef.h>

/* A shared counter: the slot with its window, and the window's owner. */
typedef struct shared_counter_t {
    rlr_slot_t *slot;
    uint64_t owner;
} shared_counter_t;

/* Copies the admissions of the last interval_sec seconds from the window of a
 * shared counter. Only an overflow window may be in a rebuild here: its lock is
 * not held. */
static bool copy_window(rlr_window_copy_t *copy, const rlr_call_t *call,
                        rlr_window_t *window, uint32_t interval_sec)
{
    uint32_t overflow = rlr_table_key_overflow(&call->shared);

    if (rlr_window_copy(copy, window, interval_sec, call->clock)) {
        return true;
    }
    if (!rlr_lock_overflow(call->table, overflow)) {
        return false;
    }
    rlr_window_repair(window);
    rlr_window_copy(copy, window, interval_sec, call->clock);
    rlr_unlock_overflow(call->table, overflow);
    return true;
}

static bool has_holder(const rlr_call_t *call)
{
    return call->key.holder != 0;
}

/* The slot of the holder's counter, or NULL. */
static rlr_slot_t *find_holders_counter_locked(const rlr_call_t *call)
{
    return has_holder(call) ? rlr_slot_find(call->table, &call->shared) : NULL;
}

/* Copies the admissions of the holder's counter in `slot`; slot NULL: of the
 * overflow window. Never of both: the holder's counter started with the
 * admissions of the overflow window. */
static bool copy_counter_locked(rlr_window_copy_t *copy, uint32_t *interval_sec,
                                const rlr_call_t *call, rlr_slot_t *slot)
{
    rlr_window_t *window = &rlr_layout_overflow_slot(
                                call->table, call->key.row,
                                rlr_table_key_overflow(&call->shared))
                                ->window;
    uint32_t built_sec;

    if (slot != NULL) {
        window = &slot->window;
        rlr_window_repair(window);
    }
    /* The key's own charges precede the locks of its sets, so this is at least
     * the interval for which they were made. */
    built_sec = rlr_window_limit(window).interval_sec;
    *interval_sec = built_sec > *interval_sec ? built_sec : *interval_sec;
    return copy_window(copy, call, window, *interval_sec);
}

bool rlr_overflow_copy_locked(rlr_window_copy_t *copy, uint32_t *interval_sec,
                              const rlr_call_t *call)
{
    return copy_counter_locked(copy, interval_sec, call,
                               find_holders_counter_locked(call));
}

/* ---- Deciding ---- */

static bool covers(rlr_limit_t wide, rlr_limit_t limit)
{
    return wide.count >= limit.count && wide.interval_sec >= limit.interval_sec;
}

/* Whether the shared window can decide on `limit`; an empty one is rebuilt for
 * it. */
static bool is_fit(const rlr_window_t *window, rlr_limit_t wide,
                   rlr_limit_t limit, const rlr_clock_t *clock)
{
    return rlr_limit_equal(wide, limit)
        || (covers(wide, limit) && rlr_window_is_live(window, clock));
}

/* Claims a slot for the holder's counter, which starts with the admissions of
 * the overflow window; *slot stays NULL if no slot is free. */
static bool claim_holders_counter_locked(const rlr_call_t *call,
                                         rlr_slot_t **slot)
{
    rlr_limit_t limit = call->request->limit;
    uint32_t interval_sec = limit.interval_sec;
    rlr_window_copy_t copy;
    rlr_time_t now;

    if (!copy_counter_locked(&copy, &interval_sec, call, NULL)) {
        return false;
    }
    if (copy.count > 0) {
        limit.interval_sec = interval_sec;
        limit.count = copy.count > limit.count ? copy.count : limit.count;
    }
    call->clock->read(&now, call->clock->baton);
    *slot = rlr_slot_claim_locked(call->table, &call->shared, limit, &copy,
                                  &now);
    return true;
}

/* Finds the holder's counter, or the overflow window if that has no slot. */
static bool find_counter_locked(const rlr_call_t *call,
                                shared_counter_t *counter)
{
    counter->slot = find_holders_counter_locked(call);
    counter->owner = call->shared.owner;
    if (counter->slot == NULL && has_holder(call) && !call->is_peek
        && !claim_holders_counter_locked(call, &counter->slot)) {
        return false;
    }
    if (counter->slot == NULL) {
        counter->slot = rlr_layout_overflow_slot(
            call->table, call->key.row, rlr_table_key_overflow(&call->shared));
        counter->owner = RLR_OVERFLOW_OWNER;
    }
    return true;
}

static bool widen_locked(const rlr_call_t *call,
                         const shared_counter_t *counter)
{
    rlr_limit_t limit = call->request->limit;

    if (counter->owner == RLR_OVERFLOW_OWNER) {
        return rlr_slot_widen_overflow(call->table, &call->shared, limit, NULL,
                                       call->clock);
    }
    rlr_slot_widen_locked(counter->slot, counter->owner, call->key.row, limit,
                          NULL, call->clock);
    return true;
}

static bool charge(const rlr_call_t *call, const shared_counter_t *counter,
                   rlr_limit_t wide, rlr_window_decision_t *decision)
{
    /* Recorded before the charge: the thread that gives the key a slot reads
     * it. */
    if (!call->is_peek) {
        rlr_slot_record_shared(call->table, call->key.row, wide.interval_sec,
                               call->clock);
    }
    return rlr_call_window(call, &counter->slot->window, counter->owner, wide,
                           call->request->limit.count, decision);
}

/*
 * The window is built for the widest limit of the keys that share it; each key
 * is refused at its own count. The locks of the key's sets are needed because
 * a slot that the key got concurrently would start without this charge.
 */
bool rlr_overflow_decide_locked(const rlr_call_t *call,
                                rlr_table_decision_t *decision,
                                rlr_slot_t **slot)
{
    rlr_limit_t limit = call->request->limit;
    rlr_limit_t wide;
    shared_counter_t counter;

    if (!find_counter_locked(call, &counter)) {
        return false;
    }
    *slot = counter.slot;
    for (;;) {
        wide = rlr_window_limit(&counter.slot->window);
        if (is_fit(&counter.slot->window, wide, limit, call->clock)
            && charge(call, &counter, wide, &decision->window)) {
            decision->overflow = !call->is_peek
                || decision->window.remaining < limit.count;
            decision->at_share = rlr_share_is_full(call->table,
                                                   call->key.holder);
            return true;
        }
        if (!widen_locked(call, &counter)) {
            return false;
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Decides for a key: finds its window and charges it without a lock. If that
 * fails (a new key, a changed limit, an unfinished rebuild) it decides again
 * with the locks of the key's sets. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getcpu() in count.h */
#endif
#include "table.h"

#include "count.h"
#include "repair.h"
#include "overflow.h"

typedef enum step_t {
    STEP_DECIDED,
    STEP_FAILED,
    /* Retry with the locks of the shared counter too. */
    STEP_SHARED
} step_t;

static bool make_key(rlr_table_key_t *key, const rlr_table_t *table,
                     const rlr_table_request_t *request)
{
    if (request->row >= table->rows) {
        return false;
    }
    rlr_table_key_fill(key, table, request->row,
                       rlr_siphash_compute(table->row_parts[request->row].key,
                                           request->identity,
                                           request->identity_length));
    return true;
}

static bool make_call(rlr_call_t *call, const rlr_table_t *table,
                      const rlr_table_request_t *request,
                      const rlr_clock_t *clock, bool is_peek)
{
    call->table = table;
    call->request = request;
    call->clock = clock;
    call->is_peek = is_peek;
    return make_key(&call->key, table, request);
}

/* Rebuilds the key's slot for the request's limit and returns the limit to
 * decide by: the slot's own if a newer configuration has set it. */
static rlr_limit_t settle_limit_locked(const rlr_call_t *call, rlr_slot_t *slot)
{
    rlr_limit_t limit = call->request->limit;
    rlr_limit_t built = rlr_window_limit(&slot->window);
    uint16_t generation = (uint16_t)call->table->generation;
    uint16_t newest = slot->generation;
    rlr_window_copy_t copy;

    rlr_window_repair(&slot->window);
    if (rlr_limit_equal(built, limit)) {
        return limit;
    }
    if (rlr_limit_is_valid(built) && (int16_t)(newest - generation) > 0) {
        return built;
    }
    rlr_window_close(&copy, &slot->window, limit.interval_sec, false,
                     call->clock);
    rlr_window_copy_fit(&copy, NULL, limit);
    rlr_window_begin(&slot->window, &copy, call->clock);
    slot->generation = generation;
    rlr_window_finish(&slot->window, call->key.owner, limit, &copy);
    return limit;
}

/* Whether a newer configuration has been attached. Relaxed: a thread that
 * takes a lock after the newer one has held it sees true. */
static bool is_outdated(const rlr_table_t *table)
{
    return atomic_load_explicit(&table->segment->generation,
                                memory_order_relaxed)
        != table->generation;
}

/* Whether a slot for `limit` would drop admissions of *copy that are younger
 * than interval_sec seconds. */
static bool would_drop(rlr_limit_t limit, const rlr_window_copy_t *copy,
                       uint32_t interval_sec)
{
    return copy->count > limit.count
        || (copy->count > 0 && interval_sec > limit.interval_sec);
}

/*
 * Claims a slot for a new key; *slot is NULL if it gets none. False: a lock
 * failed.
 *
 * A child of an older configuration does not claim one if its limit is less
 * than the count of the shared counter. Children of a newer configuration, with
 * a higher limit, may have charged all of that count to this key; a slot with
 * the old limit would drop a part of it, and they would admit that part again.
 */
static bool claim_locked(const rlr_call_t *call, bool with_shared,
                         rlr_slot_t **slot)
{
    const rlr_table_t *table = call->table;
    rlr_limit_t limit = call->request->limit;
    uint32_t interval_sec = limit.interval_sec;
    rlr_window_copy_t copy = {.count = 0, .per_mark = 1};
    rlr_time_t now;

    if (with_shared && !rlr_overflow_copy_locked(&copy, &interval_sec, call)) {
        return false;
    }
    if (!is_outdated(table) || !would_drop(limit, &copy, interval_sec)) {
        call->clock->read(&now, call->clock->baton);
        *slot = rlr_slot_claim_locked(table, &call->key, limit, &copy, &now);
    }
    return true;
}

/* Decides with the locks of the key's sets held, and with those of the shared
 * counter if with_shared. *slot is the one whose window was charged. */
static step_t decide_locked(const rlr_call_t *call, bool with_shared,
                            rlr_table_decision_t *decision, rlr_slot_t **slot)
{
    rlr_limit_t limit = call->request->limit;

    *slot = rlr_slot_find(call->table, &call->key);
    if (*slot != NULL) {
        limit = settle_limit_locked(call, *slot);
    }
    else if (!with_shared
             && rlr_slot_has_shared(call->table, call->key.row, call->clock)) {
        return STEP_SHARED;
    }
    else if (!call->is_peek && !claim_locked(call, with_shared, slot)) {
        return STEP_FAILED;
    }
    if (*slot != NULL) {
        return rlr_call_window(call, &(*slot)->window, call->key.owner, limit,
                               limit.count, &decision->window)
            ? STEP_DECIDED
            : STEP_FAILED;
    }
    if (call->request->needs_slot) {
        decision->overflow = true;
        decision->at_share = rlr_share_is_full(call->table, call->key.holder);
        return STEP_FAILED;
    }
    if (!with_shared) {
        return STEP_SHARED;
    }
    return rlr_overflow_decide_locked(call, decision, slot) ? STEP_DECIDED
                                                            : STEP_FAILED;
}

/* Sets the key's holder; true if the locks of the shared counter are needed
 * from the start. */
static bool prepare_shared(rlr_call_t *call)
{
    const rlr_table_request_t *request = call->request;

    call->key.holder = rlr_share_holder(call->table, request->holder,
                                        request->holder_length);
    call->key.is_first = request->needs_slot
        && rlr_share_is_first(call->table, call->key.holder);
    call->shared = call->key;
    if (!call->is_peek && rlr_share_is_full(call->table, call->key.holder)) {
        rlr_slot_sweep(call->table, call->key.holder, call->clock);
    }
    return call->key.holder == 0;
}

/* Decides with locks, mostly for a new key. NULL: a lock failed. */
static rlr_slot_t *decide_with_locks(rlr_call_t *call,
                                     rlr_table_decision_t *decision)
{
    const rlr_table_t *table = call->table;
    bool with_shared = prepare_shared(call);
    rlr_slot_t *slot;
    step_t step;

    if (rlr_repair_state_is_pending(table)) {
        rlr_repair_step(table);
    }
    do {
        const rlr_table_key_t *other = with_shared ? &call->shared : NULL;

        if (!rlr_lock_keys(table, &call->key, other)) {
            return NULL;
        }
        step = decide_locked(call, with_shared, decision, &slot);
        rlr_unlock_keys(table, &call->key, other);
        if (step == STEP_SHARED) {
            rlr_slot_make_shared_key(&call->shared, table, call->key.row,
                                     call->key.holder);
            with_shared = true;
        }
    } while (step == STEP_SHARED);
    return step == STEP_DECIDED ? slot : NULL;
}

/* Decides and returns the slot whose window was charged. NULL: no decision. */
static rlr_slot_t *decide(rlr_call_t *call, rlr_table_decision_t *decision)
{
    rlr_slot_t *slot = rlr_slot_find(call->table, &call->key);
    rlr_limit_t limit = call->request->limit;

    if (slot != NULL
        && rlr_call_window(call, &slot->window, call->key.owner, limit,
                           limit.count, &decision->window)) {
        return slot;
    }
    return decide_with_locks(call, decision);
}

/* Refuses, because no window could be charged. */
static void refuse_undecided(rlr_table_decision_t *decision)
{
    static const rlr_window_decision_t refusal = {
        .admitted = false, .wait_ms = 1000, .reset_ms = 1000};

    decision->window = refusal;
}

static void clear_flags(rlr_table_decision_t *decision)
{
    decision->overflow = false;
    decision->at_share = false;
    decision->first_refusal = false;
}

void rlr_table_admit(const rlr_table_t *table,
                     const rlr_table_request_t *request,
                     const rlr_clock_t *clock, rlr_table_decision_t *decision)
{
    rlr_slot_t *slot;
    rlr_call_t call;

    clear_flags(decision);
    if (!make_call(&call, table, request, clock, false)) {
        refuse_undecided(decision);
        return;
    }
    slot = rlr_limit_is_valid(request->limit) ? decide(&call, decision) : NULL;
    if (slot == NULL) {
        refuse_undecided(decision);
    }
    else if (!decision->window.admitted) {
        decision->first_refusal = rlr_count_first_refusal(
            slot, &decision->window, request->limit);
    }
    rlr_count_decision(table, request, decision);
}

void rlr_table_count(const rlr_table_t *table,
                     const rlr_table_request_t *request,
                     const rlr_table_decision_t *decision)
{
    if (request->row < table->rows) {
        rlr_count_decision(table, request, decision);
    }
}

void rlr_table_peek(const rlr_table_t *table,
                    const rlr_table_request_t *request,
                    const rlr_clock_t *clock, rlr_table_decision_t *decision)
{
    rlr_call_t call;

    clear_flags(decision);
    if (!make_call(&call, table, request, clock, true)
        || !rlr_limit_is_valid(request->limit)
        || decide(&call, decision) == NULL) {
        refuse_undecided(decision);
    }
}

bool rlr_table_hold(const rlr_table_t *table,
                    const rlr_table_request_t *request,
                    const rlr_clock_t *clock, rlr_table_decision_t *decision)
{
    rlr_table_request_t held = *request;
    rlr_call_t call;

    held.limit.count = 1;
    held.needs_slot = true;
    clear_flags(decision);
    if (make_call(&call, table, &held, clock, false)
        && decide(&call, decision) != NULL) {
        return true;
    }
    refuse_undecided(decision);
    return false;
}

bool rlr_table_knows(const rlr_table_t *table,
                     const rlr_table_request_t *request)
{
    rlr_table_key_t key;

    return make_key(&key, table, request) && rlr_slot_find(table, &key) != NULL;
}

bool rlr_table_reset(const rlr_table_t *table,
                     const rlr_table_request_t *request,
                     const rlr_clock_t *clock)
{
    rlr_slot_t *slot;
    rlr_table_key_t key;

    if (!make_key(&key, table, request) || !rlr_lock_keys(table, &key, NULL)) {
        return false;
    }
    slot = rlr_slot_find(table, &key);
    if (slot != NULL) {
        rlr_window_repair(&slot->window);
        rlr_slot_reset(slot, key.owner, clock);
    }
    rlr_unlock_keys(table, &key, NULL);
    return slot != NULL;
}

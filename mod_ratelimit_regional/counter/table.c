/* SPDX-License-Identifier: Apache-2.0 */
/* Decides by key: finds its window and asks it without a lock. If that fails
 * (a new key, a changed limit, an unfinished rebuild) it decides again with
 * the locks of the key's sets. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getcpu() in count.h */
#endif
#include "table.h"

#include "count.h"
#include "repair.h"
#include "slot.h"

typedef enum ask_t { ASK_ADMIT, ASK_PEEK } ask_t;

/* The arguments of one decision. */
typedef struct call_t {
    const rlr_table_t *table;
    const rlr_table_request_t *request;
    const rlr_clock_t *clock;
    rlr_table_key_t key;
    /* The counter of the key while it has no slot, set by prepare_shared().
     * For a key without a holder it is the key itself, which has no slot. */
    rlr_table_key_t shared;
    ask_t ask;
} call_t;

/* The window that decides, and its owner. */
typedef struct judge_t {
    rlr_slot_t *slot;
    uint64_t owner;
} judge_t;

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

static bool make_call(call_t *call, const rlr_table_t *table,
                      const rlr_table_request_t *request,
                      const rlr_clock_t *clock, ask_t ask)
{
    call->table = table;
    call->request = request;
    call->clock = clock;
    call->ask = ask;
    return make_key(&call->key, table, request);
}

static bool ask_window(const call_t *call, rlr_window_t *window, uint64_t owner,
                       rlr_limit_t limit, uint32_t cap,
                       rlr_window_decision_t *decision)
{
    rlr_window_result_t result;

    if (call->ask == ASK_ADMIT) {
        result = rlr_window_admit(window, owner, limit, cap, call->clock,
                                  decision);
    }
    else {
        result = rlr_window_peek(window, owner, limit, cap, call->clock,
                                 decision);
    }
    return result == RLR_WINDOW_DECIDED;
}

static bool is_same(rlr_limit_t a, rlr_limit_t b)
{
    return a.count == b.count && a.interval_sec == b.interval_sec;
}

/* Rebuilds the key's slot for the request's limit and returns the limit to
 * decide by: the slot's own if a newer configuration has set it. */
static rlr_limit_t settle_limit_locked(const call_t *call, rlr_slot_t *slot)
{
    rlr_limit_t limit = call->request->limit;
    rlr_limit_t built = rlr_window_limit(&slot->window);
    uint16_t generation = (uint16_t)call->table->generation;
    uint16_t newest = slot->generation;
    rlr_window_copy_t copy;

    rlr_window_repair(&slot->window);
    if (is_same(built, limit)) {
        return limit;
    }
    if (rlr_limit_valid(built) && (int16_t)(newest - generation) > 0) {
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

/* Copies the admissions of the overflow window in the last interval_sec
 * seconds. */
static bool copy_overflow(rlr_window_copy_t *copy, const call_t *call,
                          rlr_window_t *window, uint32_t interval_sec)
{
    uint32_t group = rlr_table_key_group(&call->shared);

    if (rlr_window_copy(copy, window, interval_sec, call->clock)) {
        return true;
    }
    if (!rlr_lock_group(call->table, group)) {
        return false;
    }
    rlr_window_repair(window);
    rlr_window_copy(copy, window, interval_sec, call->clock);
    rlr_unlock_group(call->table, group);
    return true;
}

static bool has_own_counter(const call_t *call)
{
    return call->key.holder != 0;
}

/* The slot of the holder's counter, or NULL. */
static rlr_slot_t *find_shared_locked(const call_t *call)
{
    return has_own_counter(call) ? rlr_slot_find(call->table, &call->shared)
                                 : NULL;
}

/*
 * Copies what a new slot starts with: the key may have been charged to a
 * shared counter. *interval_sec is raised to that counter's interval. The
 * holder's counter, if it has a slot, started with the admissions of the
 * overflow window.
 */
static bool copy_shared_locked(rlr_window_copy_t *copy, uint32_t *interval_sec,
                               const call_t *call, rlr_slot_t *slot)
{
    rlr_window_t *window = &rlr_layout_overflow_slot(
                                call->table, call->key.row,
                                rlr_table_key_group(&call->shared))
                                ->window;
    uint32_t built_sec;

    if (slot != NULL) {
        window = &slot->window;
        rlr_window_repair(window);
    }
    built_sec = rlr_window_limit(window).interval_sec;
    *interval_sec = built_sec > *interval_sec ? built_sec : *interval_sec;
    return copy_overflow(copy, call, window, *interval_sec);
}

/* Whether a newer configuration has been attached. Relaxed: a thread that
 * takes a lock after the newer one has held it sees true. */
static bool is_outdated(const rlr_table_t *table)
{
    return atomic_load_explicit(&table->segment->generation,
                                memory_order_relaxed)
        != table->generation;
}

/* Whether a slot for `limit` would drop some of *copy before interval_sec
 * seconds have passed. */
static bool forgets(rlr_limit_t limit, const rlr_window_copy_t *copy,
                    uint32_t interval_sec)
{
    return copy->count > limit.count
        || (copy->count > 0 && interval_sec > limit.interval_sec);
}

/*
 * Claims a slot for a new key; *slot is NULL if it gets none. False: a lock
 * failed. An older configuration leaves the key with the shared counter while
 * its own limit is too small for the count there: a newer one may have charged
 * all of it to this key and would admit again what the slot drops. The key's
 * own charges precede the locks of its sets, so the window's limit, read
 * first, is not less than the limit of the charges.
 */
static bool place_locked(const call_t *call, bool with_shared,
                         rlr_slot_t **slot)
{
    const rlr_table_t *table = call->table;
    rlr_limit_t limit = call->request->limit;
    uint32_t interval_sec = limit.interval_sec;
    rlr_window_copy_t copy = {.count = 0, .group = 1};
    rlr_time_t now;

    if (with_shared
        && !copy_shared_locked(&copy, &interval_sec, call,
                               find_shared_locked(call))) {
        return false;
    }
    if (!is_outdated(table) || !forgets(limit, &copy, interval_sec)) {
        call->clock->read(&now, call->clock->baton);
        *slot = rlr_slot_claim_locked(table, &call->key, limit, &copy, &now);
    }
    return true;
}

static bool covers(rlr_limit_t wide, rlr_limit_t limit)
{
    return wide.count >= limit.count && wide.interval_sec >= limit.interval_sec;
}

/* Whether the shared window can decide on `limit`; an empty one is rebuilt for
 * it. */
static bool is_fit(const rlr_window_t *window, rlr_limit_t wide,
                   rlr_limit_t limit, const rlr_clock_t *clock)
{
    return is_same(wide, limit)
        || (covers(wide, limit) && rlr_window_is_live(window, clock));
}

/* Claims a slot for the holder's counter, which starts with the admissions of
 * the overflow window; *slot stays NULL if there is none. False: a lock
 * failed. */
static bool place_shared_locked(const call_t *call, rlr_slot_t **slot)
{
    rlr_limit_t limit = call->request->limit;
    uint32_t interval_sec = limit.interval_sec;
    rlr_window_copy_t copy;
    rlr_time_t now;

    if (!copy_shared_locked(&copy, &interval_sec, call, NULL)) {
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

/* Finds the window for a key without a slot: that of the holder's counter, or
 * the overflow window if that has no slot either. False: a lock failed. */
static bool find_judge_locked(const call_t *call, judge_t *judge)
{
    judge->slot = find_shared_locked(call);
    judge->owner = call->shared.owner;
    if (judge->slot == NULL && has_own_counter(call) && call->ask == ASK_ADMIT
        && !place_shared_locked(call, &judge->slot)) {
        return false;
    }
    if (judge->slot == NULL) {
        judge->slot = rlr_layout_overflow_slot(
            call->table, call->key.row, rlr_table_key_group(&call->shared));
        judge->owner = RLR_OVERFLOW_OWNER;
    }
    return true;
}

static bool widen_locked(const call_t *call, const judge_t *judge)
{
    rlr_limit_t limit = call->request->limit;

    if (judge->owner == RLR_OVERFLOW_OWNER) {
        return rlr_slot_widen_overflow(call->table, &call->shared, limit, NULL,
                                       call->clock);
    }
    rlr_slot_widen_locked(judge->slot, judge->owner, call->key.row, limit, NULL,
                          call->clock);
    return true;
}

static bool ask_judge(const call_t *call, const judge_t *judge,
                      rlr_limit_t wide, rlr_window_decision_t *decision)
{
    /* Before the charge: the thread that gives the key a slot checks it. */
    if (call->ask == ASK_ADMIT) {
        rlr_slot_note_shared(call->table, call->key.row, wide.interval_sec,
                             call->clock);
    }
    return ask_window(call, &judge->slot->window, judge->owner, wide,
                      call->request->limit.count, decision);
}

/*
 * Decides for a key without a slot. The window is built for the widest limit
 * of the keys that share it; each key is refused at its own count. The locks
 * of the key's sets are held too: a slot that the key got concurrently would
 * start without this charge.
 */
static bool ask_shared_locked(const call_t *call,
                              rlr_table_decision_t *decision, rlr_slot_t **slot)
{
    rlr_limit_t limit = call->request->limit;
    rlr_limit_t wide;
    judge_t judge;

    if (!find_judge_locked(call, &judge)) {
        return false;
    }
    *slot = judge.slot;
    for (;;) {
        wide = rlr_window_limit(&judge.slot->window);
        if (is_fit(&judge.slot->window, wide, limit, call->clock)
            && ask_judge(call, &judge, wide, &decision->window)) {
            decision->overflow = call->ask == ASK_ADMIT
                || decision->window.remaining < limit.count;
            decision->at_share = rlr_share_is_full(call->table,
                                                   call->key.holder);
            return true;
        }
        if (!widen_locked(call, &judge)) {
            return false;
        }
    }
}

/* Decides with the locks of the key's sets held, and with those of the shared
 * counter if with_shared. *slot is the one whose window decided. */
static step_t ask_locked(const call_t *call, bool with_shared,
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
    else if (call->ask == ASK_ADMIT && !place_locked(call, with_shared, slot)) {
        return STEP_FAILED;
    }
    if (*slot != NULL) {
        return ask_window(call, &(*slot)->window, call->key.owner, limit,
                          limit.count, &decision->window)
            ? STEP_DECIDED
            : STEP_FAILED;
    }
    if (!with_shared) {
        return STEP_SHARED;
    }
    return ask_shared_locked(call, decision, slot) ? STEP_DECIDED : STEP_FAILED;
}

/* Sets the key's holder; true if the locks of the shared counter are needed
 * from the start. */
static bool prepare_shared(call_t *call)
{
    const rlr_table_request_t *request = call->request;

    call->key.holder = rlr_share_holder(call->table, request->holder,
                                        request->holder_length);
    call->shared = call->key;
    if (call->ask == ASK_ADMIT
        && rlr_share_is_full(call->table, call->key.holder)) {
        rlr_slot_sweep(call->table, call->key.holder, call->clock);
    }
    return call->key.holder == 0;
}

/* Decides with locks, mostly for a new key. NULL: a lock failed. */
static rlr_slot_t *ask_with_locks(call_t *call, rlr_table_decision_t *decision)
{
    const rlr_table_t *table = call->table;
    bool with_shared = prepare_shared(call);
    rlr_slot_t *slot;
    step_t step;

    if (rlr_segment_is_damaged(table)) {
        rlr_repair_step(table);
    }
    do {
        const rlr_table_key_t *other = with_shared ? &call->shared : NULL;

        if (!rlr_lock_keys(table, &call->key, other)) {
            return NULL;
        }
        step = ask_locked(call, with_shared, decision, &slot);
        rlr_unlock_keys(table, &call->key, other);
        if (step == STEP_SHARED) {
            rlr_slot_make_shared_key(&call->shared, table, call->key.row,
                                     call->key.holder);
            with_shared = true;
        }
    } while (step == STEP_SHARED);
    return step == STEP_DECIDED ? slot : NULL;
}

/* Decides and returns the slot whose window did, or NULL if none could. */
static rlr_slot_t *ask(call_t *call, rlr_table_decision_t *decision)
{
    rlr_slot_t *slot = rlr_slot_find(call->table, &call->key);
    rlr_limit_t limit = call->request->limit;

    if (slot != NULL
        && ask_window(call, &slot->window, call->key.owner, limit, limit.count,
                      &decision->window)) {
        return slot;
    }
    return ask_with_locks(call, decision);
}

/* The decision if none can be made: never an admission. */
static void refuse_undecided(rlr_table_decision_t *decision)
{
    static const rlr_window_decision_t refusal = {
        .admitted = false, .wait_ms = 1000, .reset_ms = 1000};

    decision->window = refusal;
}

void rlr_table_admit(const rlr_table_t *table,
                     const rlr_table_request_t *request,
                     const rlr_clock_t *clock, rlr_table_decision_t *decision)
{
    rlr_slot_t *slot;
    call_t call;

    decision->overflow = false;
    decision->at_share = false;
    decision->first_refusal = false;
    if (!make_call(&call, table, request, clock, ASK_ADMIT)) {
        refuse_undecided(decision);
        return;
    }
    slot = rlr_limit_valid(request->limit) ? ask(&call, decision) : NULL;
    if (slot == NULL) {
        refuse_undecided(decision);
    }
    else if (!decision->window.admitted) {
        decision->first_refusal = rlr_count_first_refusal(
            slot, &decision->window, request->limit);
    }
    rlr_count_decision(table, request, decision);
}

void rlr_table_peek(const rlr_table_t *table,
                    const rlr_table_request_t *request,
                    const rlr_clock_t *clock, rlr_table_decision_t *decision)
{
    call_t call;

    decision->overflow = false;
    decision->at_share = false;
    decision->first_refusal = false;
    if (!make_call(&call, table, request, clock, ASK_PEEK)
        || !rlr_limit_valid(request->limit) || ask(&call, decision) == NULL) {
        refuse_undecided(decision);
    }
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

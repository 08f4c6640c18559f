/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions by key: find its window and ask it, without a lock; where that
 * fails (a new key, a changed limit, a rebuild that somebody left unfinished)
 * once more with the locks of the key's sets. See table.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getcpu() */
#endif
#include "table.h"

#include <sched.h>

#include "siphash.h"
#include "table_place.h"

typedef enum ask_t { ASK_ADMIT, ASK_PEEK } ask_t;

/* Everything one decision needs. */
typedef struct call_t {
    const rlr_table_t *table;
    const rlr_table_request_t *request;
    const rlr_clock_t *clock;
    rlr_table_key_t key;
    ask_t ask;
} call_t;

static bool make_key(rlr_table_key_t *key, const rlr_table_t *table,
                     const rlr_table_request_t *request)
{
    rlr_siphash_t hash;

    if (request->rule >= table->rules) {
        return false;
    }
    hash = rlr_siphash_compute(table->rule_parts[request->rule].key,
                               request->identity, request->identity_length);
    key->rule = request->rule;
    key->tag = hash.first != 0 ? hash.first : 1;
    key->owner = hash.second;
    rlr_table_key_place(key, table);
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
                       rlr_decision_t *decision)
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

/*
 * Makes a slot of this key fit for the request's limit and returns the limit
 * to decide by: the slot's own if a newer configuration has set it.
 */
static rlr_limit_t settle_limit_locked(const call_t *call,
                                       rlr_table_slot_t *slot)
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

/* What a new slot starts with: the key may have been charged to the overflow
 * window, together with others. */
static bool copy_overflow(rlr_window_copy_t *copy, const call_t *call,
                          rlr_window_t *window, uint32_t interval_sec)
{
    uint32_t group = rlr_table_key_group(&call->key);

    if (rlr_window_copy(copy, window, interval_sec, call->clock)) {
        return true;
    }
    if (!rlr_table_lock_group(call->table, group)) {
        return false;
    }
    rlr_window_repair(window);
    rlr_window_copy(copy, window, interval_sec, call->clock);
    rlr_table_unlock_group(call->table, group);
    return true;
}

/* Has a newer configuration been attached? Relaxed: whatever that one has done
 * under a lock, who takes the lock after it gets true. */
static bool is_outdated(const rlr_table_t *table)
{
    return atomic_load_explicit(&table->segment->generation,
                                memory_order_relaxed)
        != table->generation;
}

/* Would a slot for `limit` ever forget some of *copy before an interval of
 * `interval_sec` is over? */
static bool forgets(rlr_limit_t limit, const rlr_window_copy_t *copy,
                    uint32_t interval_sec)
{
    return copy->count > limit.count
        || (copy->count > 0 && interval_sec > limit.interval_sec);
}

/*
 * Looks for a slot for a new key; *slot is NULL if it gets none. False: a lock
 * failed. An older configuration leaves the key with the overflow window as
 * long as its own limit is too small for what is there: a newer one may have
 * charged all of it to this key, and would admit again what the slot forgets.
 * The charges of the key itself are older than the locks of its sets, so that
 * the window's limit, read first, is not less than what they were made by.
 */
static bool place_locked(const call_t *call, rlr_table_slot_t **slot)
{
    const rlr_table_t *table = call->table;
    rlr_limit_t limit = call->request->limit;
    rlr_window_t *window = &rlr_table_overflow_slot(
                                table, call->key.rule,
                                rlr_table_key_group(&call->key))
                                ->window;
    uint32_t interval_sec = rlr_window_limit(window).interval_sec;
    rlr_window_copy_t copy;
    rlr_time_t now;

    interval_sec = interval_sec > limit.interval_sec ? interval_sec
                                                     : limit.interval_sec;
    if (!copy_overflow(&copy, call, window, interval_sec)) {
        return false;
    }
    if (!is_outdated(table) || !forgets(limit, &copy, interval_sec)) {
        call->clock->read(&now, call->clock->baton);
        *slot = rlr_table_claim_locked(table, &call->key, limit, &copy, &now);
    }
    return true;
}

static bool covers(rlr_limit_t wide, rlr_limit_t limit)
{
    return wide.count >= limit.count && wide.interval_sec >= limit.interval_sec;
}

/* A window that holds nothing goes back to the limit that is asked for. */
static bool is_fit(const rlr_window_t *window, rlr_limit_t wide,
                   rlr_limit_t limit, const rlr_clock_t *clock)
{
    return is_same(wide, limit)
        || (covers(wide, limit) && rlr_window_is_live(window, clock));
}

/*
 * Decides by the overflow window. It is built for the widest limit of the keys
 * that share it; each key is refused at its own count. The sets' locks are
 * held, so that the key cannot get a slot at the same time, which would start
 * without this charge.
 */
static bool ask_overflow_locked(const call_t *call, rlr_table_answer_t *answer,
                                rlr_table_slot_t **slot)
{
    rlr_limit_t limit = call->request->limit;
    rlr_limit_t wide;

    *slot = rlr_table_overflow_slot(call->table, call->key.rule,
                                    rlr_table_key_group(&call->key));
    for (;;) {
        wide = rlr_window_limit(&(*slot)->window);
        if (is_fit(&(*slot)->window, wide, limit, call->clock)
            && ask_window(call, &(*slot)->window, RLR_TABLE_OVERFLOW_OWNER,
                          wide, limit.count, &answer->decision)) {
            answer->overflow = call->ask == ASK_ADMIT
                || answer->decision.remaining < limit.count;
            return true;
        }
        if (!rlr_table_widen_overflow(call->table, &call->key, limit, NULL,
                                      call->clock)) {
            return false;
        }
    }
}

/* The decision with the sets' locks held. *slot: whose window decided. */
static bool ask_locked(const call_t *call, rlr_table_answer_t *answer,
                       rlr_table_slot_t **slot)
{
    rlr_limit_t limit = call->request->limit;

    *slot = rlr_table_find(call->table, &call->key);
    if (*slot != NULL) {
        limit = settle_limit_locked(call, *slot);
    }
    else if (call->ask == ASK_ADMIT && !place_locked(call, slot)) {
        return false;
    }
    if (*slot == NULL) {
        return ask_overflow_locked(call, answer, slot);
    }
    return ask_window(call, &(*slot)->window, call->key.owner, limit,
                      limit.count, &answer->decision);
}

/* Decides and returns the slot that did, or NULL: nothing could be decided. */
static rlr_table_slot_t *ask(const call_t *call, rlr_table_answer_t *answer)
{
    rlr_table_slot_t *slot = rlr_table_find(call->table, &call->key);
    rlr_limit_t limit = call->request->limit;
    bool decided;

    if (slot != NULL
        && ask_window(call, &slot->window, call->key.owner, limit, limit.count,
                      &answer->decision)) {
        return slot;
    }
    if (!rlr_table_lock_sets(call->table, &call->key)) {
        return NULL;
    }
    decided = ask_locked(call, answer, &slot);
    rlr_table_unlock_sets(call->table, &call->key);
    return decided ? slot : NULL;
}

/* Another processor's clock may be ahead, or this thread was stopped between
 * the decision and its note. */
#define NOTICED_AHEAD_MS 1000U

/* One refusal per window and interval is worth a line in the log. The only
 * write of a refusal, and at most once in an interval. */
static bool note_refusal(rlr_table_slot_t *slot, const rlr_decision_t *decision,
                         rlr_limit_t limit)
{
    uint32_t now = (uint32_t)decision->at_ms;
    uint32_t noticed = atomic_load_explicit(&slot->noticed,
                                            memory_order_relaxed);

    return now - noticed >= limit.interval_sec * 1000
        && noticed - now > NOTICED_AHEAD_MS
        && atomic_compare_exchange_strong_explicit(&slot->noticed, &noticed,
                                                   now, memory_order_relaxed,
                                                   memory_order_relaxed);
}

/* Relaxed: sums for people, no other memory depends on them. */
static void add_one(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static void count_answer(const rlr_table_t *table,
                         const rlr_table_request_t *request,
                         const rlr_table_answer_t *answer)
{
    rlr_table_counter_t *line =
        &table->counters[(size_t)request->rule * RLR_TABLE_STRIPES
                         + (uint32_t)sched_getcpu() % RLR_TABLE_STRIPES];

    if (answer->decision.admitted) {
        add_one(&line->allowed);
    }
    else if (request->dry_run) {
        add_one(&line->would_refuse);
    }
    else {
        add_one(&line->refused);
    }
    if (answer->overflow) {
        add_one(&line->overflow);
    }
}

/* The answer when none can be computed: never a free pass. */
static void refuse_blindly(rlr_table_answer_t *answer)
{
    static const rlr_decision_t refusal = {
        .admitted = false, .wait_ms = 1000, .reset_ms = 1000};

    answer->decision = refusal;
}

void rlr_table_admit(const rlr_table_t *table,
                     const rlr_table_request_t *request,
                     const rlr_clock_t *clock, rlr_table_answer_t *answer)
{
    rlr_table_slot_t *slot;
    call_t call;

    answer->overflow = false;
    answer->first_refusal = false;
    if (!make_call(&call, table, request, clock, ASK_ADMIT)) {
        refuse_blindly(answer);
        return;
    }
    slot = rlr_limit_valid(request->limit) ? ask(&call, answer) : NULL;
    if (slot == NULL) {
        refuse_blindly(answer);
    }
    else if (!answer->decision.admitted) {
        answer->first_refusal = note_refusal(slot, &answer->decision,
                                             request->limit);
    }
    count_answer(table, request, answer);
}

void rlr_table_peek(const rlr_table_t *table,
                    const rlr_table_request_t *request,
                    const rlr_clock_t *clock, rlr_table_answer_t *answer)
{
    call_t call;

    answer->overflow = false;
    answer->first_refusal = false;
    if (!make_call(&call, table, request, clock, ASK_PEEK)
        || !rlr_limit_valid(request->limit) || ask(&call, answer) == NULL) {
        refuse_blindly(answer);
    }
}

bool rlr_table_knows(const rlr_table_t *table,
                     const rlr_table_request_t *request)
{
    rlr_table_key_t key;

    return make_key(&key, table, request)
        && rlr_table_find(table, &key) != NULL;
}

bool rlr_table_reset(const rlr_table_t *table,
                     const rlr_table_request_t *request,
                     const rlr_clock_t *clock)
{
    rlr_table_slot_t *slot;
    rlr_table_key_t key;

    if (!make_key(&key, table, request) || !rlr_table_lock_sets(table, &key)) {
        return false;
    }
    slot = rlr_table_find(table, &key);
    if (slot != NULL) {
        rlr_window_repair(&slot->window);
        rlr_table_reset_slot(slot, key.owner, clock);
    }
    rlr_table_unlock_sets(table, &key);
    return slot != NULL;
}

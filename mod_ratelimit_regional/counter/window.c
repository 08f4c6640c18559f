/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The window's lock-free half: deciding. See window.h for what it promises;
 * window_rebuild.c has the half that needs a lock.
 *
 * Why no admission can be lost or forgotten early. A mark is raised to the time
 * of an admission before the state that counts the admission is published, so
 * a counted admission is never later than its mark. Marks in use only grow.
 * Marks leave only by the same compare-and-swap that publishes an admission,
 * so nothing is subtracted twice. A process that dies between the two leaves a
 * mark somewhat late and counts nothing.
 *
 * Why the times are true. The clock is read between two loads of the same
 * state: later than everything that the state counts, so that an old reading
 * cannot be published after a newer one; and earlier than whatever is published
 * next, so that a mark is not raised long after somebody else has filled it.
 *
 * Why a refusal is true. A place is not written while it is in use, except as
 * the newest mark, because the ring is longer than the marks in use; and a
 * refusal loads the state again after the marks, so that they belong to it.
 *
 * Marks are milliseconds modulo 2^32, which come round every 49.7 days. The
 * state says in which span of 2^29 ms (6.2 days) it was published: a window
 * that slept through a whole round, up to four years, is known to be empty, and
 * all marks in use are within 14 days of now when they are compared. A place
 * that is taken into use may still hold a time of an earlier round that looks
 * like the future: what was there before the clock was read and is later than
 * it can only be such a rest. No step depends on how long a process is stopped
 * between two instructions.
 */
#include "window.h"

#include "window_state.h"

bool rlr_limit_valid(rlr_limit_t limit)
{
    return limit.count >= 1 && limit.count <= RLR_LIMIT_COUNT_MAX
        && limit.interval_sec >= 1
        && limit.interval_sec <= RLR_LIMIT_INTERVAL_SEC_MAX;
}

rlr_limit_t rlr_window_limit(const rlr_window_t *window)
{
    return rlr_window_unpack_limit(
        atomic_load_explicit(&window->limit, memory_order_acquire));
}

static bool is_over(uint32_t mark, uint32_t interval_ms, const rlr_time_t *now)
{
    return (int32_t)((uint32_t)now->floor_ms - mark) >= (int32_t)interval_ms;
}

void rlr_window_drop(rlr_window_view_t *view, const rlr_window_t *window,
                     uint32_t interval_ms, const rlr_time_t *now)
{
    uint32_t newest;

    if (view->length == 0) {
        return;
    }
    newest = rlr_window_place(view, view->length - 1);
    if (rlr_window_eras_since(view, now) >= 2
        || is_over(rlr_window_mark(window, newest), interval_ms, now)) {
        rlr_window_empty(view);
        return;
    }
    while (view->length > 1
           && is_over(rlr_window_mark(window, view->head), interval_ms, now)) {
        view->head = rlr_window_place(view, 1);
        view->length--;
    }
}

/* Until `marks` oldest marks have gone; they may be slightly out of order. */
static uint32_t wait_for_marks(const rlr_window_t *window,
                               const rlr_window_view_t *view, uint32_t marks,
                               uint32_t interval_ms, const rlr_time_t *now)
{
    int32_t longest = 0;

    for (uint32_t i = 0; i < marks; i++) {
        uint32_t mark = rlr_window_mark(window, rlr_window_place(view, i));
        int32_t wait = (int32_t)(mark + interval_ms - (uint32_t)now->floor_ms);

        longest = wait > longest ? wait : longest;
    }
    return (uint32_t)longest;
}

/* The answer at `held` of `cap` admissions, before one more. */
static void decide(rlr_decision_t *decision, const rlr_window_t *window,
                   const rlr_window_view_t *view, rlr_limit_t limit,
                   uint32_t cap, const rlr_time_t *now)
{
    uint32_t group = rlr_window_group(limit.count);
    uint32_t held = rlr_window_held(view, group);
    uint32_t marks = view->length > 0 ? 1 : 0;

    decision->admitted = held < cap;
    decision->remaining = 0;
    if (decision->admitted) {
        decision->remaining = cap - held;
    }
    else if (view->length > 0) {
        marks = (held - cap) / group + 1;
        marks = marks < view->length ? marks : view->length;
    }
    decision->reset_ms = wait_for_marks(window, view, marks,
                                        limit.interval_sec * 1000, now);
    decision->wait_ms = decision->admitted ? 0 : decision->reset_ms;
    decision->at_ms = now->floor_ms;
}

/* Has nothing been published since `state` was loaded? The acquire loads of
 * owner, limit and marks, and the clock, keep this load behind them. */
static bool is_current(const rlr_window_t *window, uint64_t state)
{
    return atomic_load_explicit(&window->state, memory_order_relaxed) == state;
}

/* What a decision is made from. */
typedef struct look_t {
    uint64_t state;
    rlr_window_view_t view; /* without the marks that are over */
    rlr_time_t now;         /* a moment at which `state` was the state */
    /* Loaded before `now` was read: the newest mark, and what is in the place
     * of the next one. */
    uint32_t newest;
    uint32_t next;
} look_t;

/* False: the window is not an open one of `owner` for `limit`. */
static bool look_at(look_t *look, const rlr_window_t *window, uint64_t owner,
                    rlr_limit_t limit, const rlr_clock_t *clock)
{
    rlr_window_view_t *view = &look->view;

    do {
        /* Acquire: owner, limit and marks are at least as new. */
        look->state = atomic_load_explicit(&window->state,
                                           memory_order_acquire);
        *view = rlr_window_unpack(look->state);
        if (view->phase != RLR_PHASE_OPEN
            || atomic_load_explicit(&window->owner, memory_order_acquire)
                != owner
            || atomic_load_explicit(&window->limit, memory_order_acquire)
                != rlr_window_pack_limit(limit)) {
            return false;
        }
        look->next = rlr_window_mark(window,
                                     rlr_window_place(view, view->length));
        look->newest = view->length == 0
            ? look->next
            : rlr_window_mark(window, rlr_window_place(view, view->length - 1));
        clock->read(&look->now, clock->baton);
    } while (!is_current(window, look->state));
    rlr_window_drop(view, window, limit.interval_sec * 1000, &look->now);
    return true;
}

/*
 * Takes the place of one admission in the view and raises its mark; *stamp is
 * then the mark's time. False: somebody else has written there; look again.
 *
 * Release: who reads this mark and then the state sees a state at least as new
 * as the one that let us write here, which is how a refusal finds out that its
 * marks are not those of its state.
 */
static bool take_place(look_t *look, uint32_t *stamp, rlr_window_t *window,
                       uint32_t group)
{
    rlr_window_view_t *view = &look->view;
    uint32_t now = (uint32_t)look->now.ceil_ms;
    uint32_t seen = look->next;

    *stamp = now;
    if (view->length > 0 && view->open < group) {
        seen = look->newest;
        view->open++;
    }
    else {
        /* Not before the mark in front of it, whose writer's clock may be a
         * tick ahead: the newest mark is the last of all to be over. */
        if (view->length > 0 && (int32_t)(look->newest - now) > 0) {
            *stamp = look->newest;
        }
        view->length++;
        view->open = 1;
    }
    /* A little ahead is another processor's clock; more is of another round. */
    if ((int32_t)(seen - *stamp) >= 0 && (int32_t)(seen - now) <= 16) {
        *stamp = seen;
        return true;
    }
    return atomic_compare_exchange_strong_explicit(
        &window->marks[rlr_window_place(view, view->length - 1)], &seen, *stamp,
        memory_order_release, memory_order_relaxed);
}

/* Completes the answer for an admission that has been published with a mark
 * at `stamp`. */
static void settle(rlr_decision_t *decision, const rlr_window_view_t *view,
                   uint32_t stamp, rlr_limit_t limit, const rlr_time_t *now)
{
    int32_t ahead_ms = (int32_t)(stamp - (uint32_t)now->floor_ms);

    decision->remaining--;
    decision->at_ms = now->floor_ms + (uint64_t)(int64_t)ahead_ms;
    if (view->length == 1) {
        decision->reset_ms = limit.interval_sec * 1000 + (uint32_t)ahead_ms;
    }
}

rlr_window_result_t rlr_window_admit(rlr_window_t *window, uint64_t owner,
                                     rlr_limit_t limit, uint32_t cap,
                                     const rlr_clock_t *clock,
                                     rlr_decision_t *decision)
{
    uint32_t group = rlr_window_group(limit.count);
    uint32_t stamp;
    look_t look;

    for (;;) {
        if (!look_at(&look, window, owner, limit, clock)) {
            return RLR_WINDOW_CHANGED;
        }
        decide(decision, window, &look.view, limit, cap, &look.now);
        if (!decision->admitted) {
            if (is_current(window, look.state)) {
                return RLR_WINDOW_DECIDED;
            }
        }
        /* Release: who sees this state sees the mark raised. */
        else if (take_place(&look, &stamp, window, group)
                 && atomic_compare_exchange_strong_explicit(
                     &window->state, &look.state,
                     rlr_window_next(&look.view, &look.now),
                     memory_order_release, memory_order_relaxed)) {
            settle(decision, &look.view, stamp, limit, &look.now);
            return RLR_WINDOW_DECIDED;
        }
    }
}

rlr_window_result_t rlr_window_peek(const rlr_window_t *window, uint64_t owner,
                                    rlr_limit_t limit, uint32_t cap,
                                    const rlr_clock_t *clock,
                                    rlr_decision_t *decision)
{
    look_t look;

    do {
        if (!look_at(&look, window, owner, limit, clock)) {
            return RLR_WINDOW_CHANGED;
        }
        decide(decision, window, &look.view, limit, cap, &look.now);
    } while (!is_current(window, look.state));
    return RLR_WINDOW_DECIDED;
}

bool rlr_window_reset(rlr_window_t *window, uint64_t owner)
{
    rlr_window_view_t view;
    uint64_t state = atomic_load_explicit(&window->state, memory_order_acquire);

    do {
        view = rlr_window_unpack(state);
        if (view.phase != RLR_PHASE_OPEN
            || atomic_load_explicit(&window->owner, memory_order_acquire)
                != owner) {
            return false;
        }
        rlr_window_empty(&view);
    } while (!atomic_compare_exchange_weak_explicit(
        &window->state, &state, rlr_window_pack_next(&view),
        memory_order_acq_rel, memory_order_acquire));
    return true;
}

bool rlr_window_is_live(const rlr_window_t *window, const rlr_clock_t *clock)
{
    rlr_window_view_t view;
    rlr_limit_t limit;
    rlr_time_t now;
    uint64_t state;

    do {
        state = atomic_load_explicit(&window->state, memory_order_acquire);
        view = rlr_window_unpack(state);
        if (view.phase != RLR_PHASE_OPEN) {
            return true;
        }
        limit = rlr_window_limit(window);
        clock->read(&now, clock->baton);
        rlr_window_drop(&view, window, limit.interval_sec * 1000, &now);
    } while (!is_current(window, state));
    return view.length > 0;
}

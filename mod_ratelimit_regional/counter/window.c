/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides on a window, lock-free. window_rebuild.c has the operations that
 * need a lock.
 *
 * No admission is lost or expires early. A mark is raised to the time of an
 * admission before the state that counts the admission is published, so a
 * counted admission is never later than its mark. Marks in use only grow.
 * Marks are removed only by the compare-and-swap that publishes an admission,
 * so none is subtracted twice. A process that dies between the two steps
 * leaves a mark slightly late and counts nothing.
 *
 * The times are exact. The clock is read between two loads of the same state:
 * after everything that the state counts, so that an old reading cannot be
 * published after a newer one, and before the next state, so that a mark is
 * not raised long after another thread has filled it.
 *
 * A refusal is correct. It loads the state again after the marks, so that the
 * marks belong to the state; and the ring is longer than the marks in use, so
 * that of these only the newest is overwritten.
 *
 * Marks are milliseconds modulo 2^32, which wrap every 49.7 days. The state
 * therefore has the era in which it was published, a span of 2^29 ms (6.2
 * days): a window that was not used for a whole wrap, up to four years, is
 * recognized as empty, and all marks in use are within 14 days of now when they
 * are compared. A free ring entry may hold a time of an earlier wrap that looks
 * like the future. It is recognized because it was loaded before the clock was
 * read and is later than the clock. No step depends on how long a process is
 * stopped between two instructions.
 */
#include "window.h"

#include "window_state.h"

rlr_limit_t rlr_window_limit(const rlr_window_t *window)
{
    return rlr_window_unpack_limit(
        atomic_load_explicit(&window->limit, memory_order_acquire));
}

static bool has_expired(uint32_t mark, uint32_t interval_ms,
                        const rlr_time_t *now)
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
    newest = rlr_window_index(view, view->length - 1);
    if (rlr_window_eras_since(view, now) >= 2
        || has_expired(rlr_window_mark(window, newest), interval_ms, now)) {
        rlr_window_empty(view);
        return;
    }
    while (
        view->length > 1
        && has_expired(rlr_window_mark(window, view->head), interval_ms, now)) {
        view->head = rlr_window_index(view, 1);
        view->length--;
    }
}

/* Until the oldest `marks` marks expire; they may be slightly out of order. */
static uint32_t wait_for_marks(const rlr_window_t *window,
                               const rlr_window_view_t *view, uint32_t marks,
                               uint32_t interval_ms, const rlr_time_t *now)
{
    int32_t longest = 0;

    for (uint32_t i = 0; i < marks; i++) {
        uint32_t mark = rlr_window_mark(window, rlr_window_index(view, i));
        int32_t wait = (int32_t)(mark + interval_ms - (uint32_t)now->floor_ms);

        longest = wait > longest ? wait : longest;
    }
    return (uint32_t)longest;
}

/* The decision on the view, before one more admission. */
static void decide(rlr_window_decision_t *decision, const rlr_window_t *window,
                   const rlr_window_view_t *view, rlr_limit_t limit,
                   uint32_t cap, const rlr_time_t *now)
{
    uint32_t per_mark = rlr_window_per_mark(limit.count);
    uint32_t held = rlr_window_held(view, per_mark);
    uint32_t marks = view->length > 0 ? 1 : 0;

    decision->admitted = held < cap;
    decision->remaining = 0;
    if (decision->admitted) {
        decision->remaining = cap - held;
    }
    else if (view->length > 0) {
        marks = (held - cap) / per_mark + 1;
        marks = marks < view->length ? marks : view->length;
    }
    decision->reset_ms = wait_for_marks(window, view, marks,
                                        limit.interval_sec * 1000, now);
    decision->wait_ms = decision->admitted ? 0 : decision->reset_ms;
    decision->at_ms = now->floor_ms;
}

/* Whether `state` is still the published one. The acquire loads of owner,
 * limit and marks, and the clock, order this load after them. */
static bool is_current(const rlr_window_t *window, uint64_t state)
{
    return atomic_load_explicit(&window->state, memory_order_relaxed) == state;
}

/* A consistent view of a window, for one decision. */
typedef struct snapshot_t {
    uint64_t state;
    rlr_window_view_t view; /* without expired marks */
    rlr_time_t now;         /* a time at which `state` was current */
    /* Loaded before `now` was read: the newest mark, and the ring entry after
     * it. */
    uint32_t newest;
    uint32_t next;
} snapshot_t;

/* False: the window is not open, or not built for `owner` and `limit`. */
static bool take_snapshot(snapshot_t *snapshot, const rlr_window_t *window,
                          uint64_t owner, rlr_limit_t limit,
                          const rlr_clock_t *clock)
{
    rlr_window_view_t *view = &snapshot->view;

    do {
        /* Acquire: owner, limit and marks are at least as new. */
        snapshot->state = atomic_load_explicit(&window->state,
                                               memory_order_acquire);
        *view = rlr_window_unpack(snapshot->state);
        if (view->phase != RLR_PHASE_OPEN
            || atomic_load_explicit(&window->owner, memory_order_acquire)
                != owner
            || atomic_load_explicit(&window->limit, memory_order_acquire)
                != rlr_window_pack_limit(limit)) {
            return false;
        }
        snapshot->next = rlr_window_mark(window,
                                         rlr_window_index(view, view->length));
        snapshot->newest = view->length == 0
            ? snapshot->next
            : rlr_window_mark(window, rlr_window_index(view, view->length - 1));
        clock->read(&snapshot->now, clock->baton);
    } while (!is_current(window, snapshot->state));
    rlr_window_drop(view, window, limit.interval_sec * 1000, &snapshot->now);
    return true;
}

/*
 * Adds one admission to the view and raises its mark; *stamp is the mark's
 * time. False: another thread has written the mark; the caller takes a new
 * snapshot. Release: a thread that reads this mark and then the state sees at
 * least the state of the snapshot, by which a refusal detects that its marks do
 * not belong to its state.
 */
static bool take_mark(snapshot_t *snapshot, uint32_t *stamp,
                      rlr_window_t *window, uint32_t per_mark)
{
    rlr_window_view_t *view = &snapshot->view;
    uint32_t now = (uint32_t)snapshot->now.ceil_ms;
    uint32_t seen = snapshot->next;

    *stamp = now;
    if (view->length > 0 && view->open < per_mark) {
        seen = snapshot->newest;
        view->open++;
    }
    else {
        /* Not before the previous mark, whose writer's clock may be a tick
         * ahead: the newest mark must be the last to expire. */
        if (view->length > 0 && (int32_t)(snapshot->newest - now) > 0) {
            *stamp = snapshot->newest;
        }
        view->length++;
        view->open = 1;
    }
    /* Slightly ahead: another processor's clock. More: an earlier wrap. */
    if ((int32_t)(seen - *stamp) >= 0 && (int32_t)(seen - now) <= 16) {
        *stamp = seen;
        return true;
    }
    return atomic_compare_exchange_strong_explicit(
        &window->marks[rlr_window_index(view, view->length - 1)], &seen, *stamp,
        memory_order_release, memory_order_relaxed);
}

/* Completes the decision on an admission that was published with a mark at
 * `stamp`. */
static void settle(rlr_window_decision_t *decision,
                   const rlr_window_view_t *view, uint32_t stamp,
                   rlr_limit_t limit, const rlr_time_t *now)
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
                                     rlr_window_decision_t *decision)
{
    uint32_t per_mark = rlr_window_per_mark(limit.count);
    uint32_t stamp;
    snapshot_t snapshot;

    for (;;) {
        if (!take_snapshot(&snapshot, window, owner, limit, clock)) {
            return RLR_WINDOW_CHANGED;
        }
        decide(decision, window, &snapshot.view, limit, cap, &snapshot.now);
        if (!decision->admitted) {
            if (is_current(window, snapshot.state)) {
                return RLR_WINDOW_DECIDED;
            }
        }
        /* Release: a thread that sees this state sees the raised mark. */
        else if (take_mark(&snapshot, &stamp, window, per_mark)
                 && atomic_compare_exchange_strong_explicit(
                     &window->state, &snapshot.state,
                     rlr_window_next(&snapshot.view, &snapshot.now),
                     memory_order_release, memory_order_relaxed)) {
            settle(decision, &snapshot.view, stamp, limit, &snapshot.now);
            return RLR_WINDOW_DECIDED;
        }
    }
}

rlr_window_result_t rlr_window_peek(const rlr_window_t *window, uint64_t owner,
                                    rlr_limit_t limit, uint32_t cap,
                                    const rlr_clock_t *clock,
                                    rlr_window_decision_t *decision)
{
    snapshot_t snapshot;

    do {
        if (!take_snapshot(&snapshot, window, owner, limit, clock)) {
            return RLR_WINDOW_CHANGED;
        }
        decide(decision, window, &snapshot.view, limit, cap, &snapshot.now);
    } while (!is_current(window, snapshot.state));
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

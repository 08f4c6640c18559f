/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilds windows under their lock; no admission is lost if the process dies
 * at any point. */
#include "window_rebuild.h"

#include <stddef.h>

#include "window_state.h"

/* Copies the marks of a view without expired marks. */
static void copy_view(rlr_window_copy_t *copy, const rlr_window_t *window,
                      const rlr_window_view_t *view, uint32_t per_mark)
{
    copy->count = rlr_window_held(view, per_mark);
    copy->per_mark = per_mark;
    for (uint32_t i = 0; i < view->length; i++) {
        copy->marks[i] = rlr_window_mark(window, rlr_window_index(view, i));
    }
}

/* Copies what a state counts; false if the window is closed. */
static bool copy_state(rlr_window_copy_t *copy, rlr_window_view_t *view,
                       const rlr_window_t *window, uint64_t state,
                       uint32_t interval_sec, const rlr_time_t *now)
{
    rlr_limit_t limit;

    *view = rlr_window_unpack(state);
    copy->count = 0;
    copy->per_mark = 1;
    if (view->phase != RLR_PHASE_OPEN) {
        return false;
    }
    limit = rlr_window_limit(window);
    if (interval_sec == 0) {
        interval_sec = limit.interval_sec;
    }
    rlr_window_drop(view, window, interval_sec * 1000, now);
    if (view->length > 0) {
        copy_view(copy, window, view, rlr_window_per_mark(limit.count));
    }
    return true;
}

bool rlr_window_copy(rlr_window_copy_t *copy, const rlr_window_t *window,
                     uint32_t interval_sec, const rlr_clock_t *clock)
{
    rlr_window_view_t view;
    rlr_time_t now;
    uint64_t state;

    do {
        state = atomic_load_explicit(&window->state, memory_order_acquire);
        clock->read(&now, clock->baton);
        if (!copy_state(copy, &view, window, state, interval_sec, &now)) {
            return false;
        }
        /* The acquire loads of limit and marks order this load after them. */
    } while (atomic_load_explicit(&window->state, memory_order_relaxed)
             != state);
    return true;
}

/* The mark of the admission with `younger` admissions after it. */
static uint32_t mark_at(const rlr_window_copy_t *copy, uint32_t younger)
{
    return copy->marks[(copy->count - 1 - younger) / copy->per_mark];
}

/* Each new mark gets the time of the last admission in it. A limit with fewer
 * marks makes the others later; the oldest admissions beyond the count are
 * dropped, since none of them matters before all younger ones have expired. */
void rlr_window_copy_fit(rlr_window_copy_t *copy,
                         const rlr_window_copy_t *other, rlr_limit_t limit)
{
    rlr_window_copy_t fitted = {0, rlr_window_per_mark(limit.count), {0}};
    uint32_t count = copy->count;

    if (other != NULL && other->count > count) {
        count = other->count;
    }
    fitted.count = count < limit.count ? count : limit.count;
    for (uint32_t i = 0, end = 0; end < fitted.count; i++) {
        uint32_t younger;
        bool has_mark = false;

        end = (i + 1) * fitted.per_mark;
        end = end < fitted.count ? end : fitted.count;
        younger = fitted.count - end;
        if (younger < copy->count) {
            fitted.marks[i] = mark_at(copy, younger);
            has_mark = true;
        }
        if (other != NULL && younger < other->count) {
            uint32_t mark = mark_at(other, younger);

            if (!has_mark || (int32_t)(mark - fitted.marks[i]) > 0) {
                fitted.marks[i] = mark;
            }
        }
    }
    *copy = fitted;
}

bool rlr_window_close(rlr_window_copy_t *copy, rlr_window_t *window,
                      uint32_t interval_sec, bool only_dead,
                      const rlr_clock_t *clock)
{
    rlr_window_view_t view;
    rlr_time_t now;
    uint64_t state;

    rlr_window_repair(window);
    do {
        /* Acquire: the copied marks are those of this state or later. */
        state = atomic_load_explicit(&window->state, memory_order_acquire);
        /* After the state and before the swap: see window.c. */
        clock->read(&now, clock->baton);
        if (only_dead) {
            copy_state(copy, &view, window, state, 0, &now);
            if (view.length > 0) {
                return false;
            }
        }
        copy_state(copy, &view, window, state, interval_sec, &now);
        view = rlr_window_unpack(state);
        view.phase = RLR_PHASE_CLOSED;
        /* Acquire on success: no thread that still decides on the previous
         * state sees the owner, limit and marks written from here on. */
    } while (!atomic_compare_exchange_weak_explicit(
        &window->state, &state, rlr_window_pack_next(&view),
        memory_order_acq_rel, memory_order_relaxed));
    return true;
}

/*
 * The spare mark holds the newest time until finish, so that repair can keep
 * copy->count admissions whichever marks have been written. No other thread
 * changes a closed window: plain stores, released for a thread that repairs
 * after recovering the lock, and for readers without the lock.
 */
void rlr_window_begin(rlr_window_t *window, const rlr_window_copy_t *copy,
                      const rlr_clock_t *clock)
{
    uint64_t state = atomic_load_explicit(&window->state, memory_order_relaxed);
    rlr_window_view_t view = rlr_window_unpack(state);
    rlr_time_t now;

    if (copy->count > 0) {
        atomic_store_explicit(&window->marks[RLR_WINDOW_RING - 1],
                              copy->marks[(copy->count - 1) / copy->per_mark],
                              memory_order_relaxed);
    }
    clock->read(&now, clock->baton);
    view.phase = RLR_PHASE_WRITTEN;
    view.head = copy->count >> 21;
    view.length = (copy->count >> 14) & 127;
    view.open = copy->count & 16383;
    atomic_store_explicit(&window->state, rlr_window_next(&view, &now),
                          memory_order_release);
}

static void open_window(rlr_window_t *window, const rlr_window_copy_t *copy)
{
    uint64_t state = atomic_load_explicit(&window->state, memory_order_relaxed);
    rlr_window_view_t view = rlr_window_unpack(state);

    view.phase = RLR_PHASE_OPEN;
    view.head = 0;
    view.length = (copy->count + copy->per_mark - 1) / copy->per_mark;
    view.open = copy->count > 0
        ? copy->count - (view.length - 1) * copy->per_mark
        : 0;
    for (uint32_t i = 0; i < view.length; i++) {
        /* Release, as in take_mark() of window.c. */
        atomic_store_explicit(&window->marks[i], copy->marks[i],
                              memory_order_release);
    }
    atomic_store_explicit(&window->state, rlr_window_pack_next(&view),
                          memory_order_release);
}

void rlr_window_finish(rlr_window_t *window, uint64_t owner, rlr_limit_t limit,
                       const rlr_window_copy_t *copy)
{
    /* The limit first: repair caps the count at the limit it finds, and that
     * of an unused window would cut the new owner's count. */
    atomic_store_explicit(&window->limit, rlr_window_pack_limit(limit),
                          memory_order_release);
    atomic_store_explicit(&window->owner, owner, memory_order_release);
    open_window(window, copy);
}

/* Copies the admissions that repair keeps of a window that was being written:
 * all, at the newest time, up to the stored limit. */
static void copy_written(rlr_window_copy_t *copy, const rlr_window_t *window,
                         const rlr_window_view_t *view)
{
    rlr_limit_t limit = rlr_window_limit(window);

    copy->count = view->head << 21 | view->length << 14 | view->open;
    copy->count = copy->count < limit.count ? copy->count : limit.count;
    copy->per_mark = limit.count > 0 ? rlr_window_per_mark(limit.count) : 1;
    for (uint32_t i = 0; i < RLR_WINDOW_MARKS; i++) {
        copy->marks[i] = rlr_window_mark(window, RLR_WINDOW_RING - 1);
    }
}

void rlr_window_repair(rlr_window_t *window)
{
    uint64_t state = atomic_load_explicit(&window->state, memory_order_acquire);
    rlr_window_view_t view = rlr_window_unpack(state);
    rlr_window_copy_t copy;

    if (view.phase == RLR_PHASE_CLOSED) {
        view.phase = RLR_PHASE_OPEN;
        atomic_store_explicit(&window->state, rlr_window_pack_next(&view),
                              memory_order_release);
    }
    else if (view.phase == RLR_PHASE_WRITTEN) {
        copy_written(&copy, window, &view);
        open_window(window, &copy);
    }
}

const char *rlr_window_validate(const rlr_window_t *window,
                                const rlr_clock_t *clock)
{
    uint64_t state = atomic_load_explicit(&window->state, memory_order_acquire);
    rlr_window_view_t view = rlr_window_unpack(state);
    rlr_limit_t limit = rlr_window_limit(window);
    uint32_t per_mark = rlr_window_per_mark(limit.count);
    rlr_time_t now;

    if (view.phase != RLR_PHASE_OPEN) {
        return view.phase > RLR_PHASE_WRITTEN ? "unknown phase" : NULL;
    }
    if (view.length == 0) {
        return view.open == 0 && view.head < RLR_WINDOW_RING
            ? NULL
            : "an empty window with a count";
    }
    if (!rlr_limit_is_valid(limit)) {
        return "marks without a limit";
    }
    if (view.head >= RLR_WINDOW_RING || view.length > RLR_WINDOW_MARKS
        || view.open == 0 || view.open > per_mark) {
        return "head, length or open out of range";
    }
    if (rlr_window_held(&view, per_mark) > limit.count) {
        return "more admissions than the limit";
    }
    clock->read(&now, clock->baton);
    for (uint32_t i = 0;
         rlr_window_eras_since(&view, &now) < 2 && i < view.length; i++) {
        uint32_t mark = rlr_window_mark(window, rlr_window_index(&view, i));

        if ((int32_t)(mark - (uint32_t)now.ceil_ms) > 16) {
            return "a mark in the future";
        }
    }
    return NULL;
}

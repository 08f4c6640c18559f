/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state word of a window, private to window*.c. It holds all fields that
 * change together, so that one compare-and-swap publishes them:
 *
 *     bit 63      39 38    37 36     28 27    21 20      14 13      0
 *        sequence 25  phase 2   era 9    head 7   length 7   open 14
 *                                       '------ count 28, while written ----'
 *
 *   sequence  incremented by every change, so that no value recurs while a
 *             process may still hold it
 *   phase     open; closed for a rebuild, the other fields unchanged; or being
 *             written: the low 28 bits are the admissions that repair must keep
 *   era       time of the last change in units of 2^29 ms (6.2 days)
 *   head      ring index of the oldest mark
 *   length    marks in use
 *   open      admissions in the newest mark; all others hold per_mark
 */
#ifndef RLR_WINDOW_STATE_H
#define RLR_WINDOW_STATE_H

#include "window.h"

#define RLR_PHASE_OPEN    0U
#define RLR_PHASE_CLOSED  1U
#define RLR_PHASE_WRITTEN 2U

#define RLR_ERA_SHIFT 29
#define RLR_ERA_BITS  9

_Static_assert(sizeof(rlr_window_t) == 24 + 4 * RLR_WINDOW_RING,
               "the layout in window.h");
_Static_assert(RLR_LIMIT_COUNT_MAX / RLR_WINDOW_MARKS < (1 << 14),
               "a per_mark fits into open");
_Static_assert(RLR_WINDOW_RING > RLR_WINDOW_MARKS + 1 && RLR_WINDOW_RING < 128,
               "a free entry, a spare one, and 7 bits for head");

typedef struct rlr_window_view_t {
    uint32_t sequence;
    uint32_t phase;
    uint32_t era;
    uint32_t head;
    uint32_t length;
    uint32_t open;
} rlr_window_view_t;

static inline rlr_window_view_t rlr_window_unpack(uint64_t state)
{
    rlr_window_view_t view = {
        (uint32_t)(state >> 39),       (uint32_t)(state >> 37) & 3,
        (uint32_t)(state >> 28) & 511, (uint32_t)(state >> 21) & 127,
        (uint32_t)(state >> 14) & 127, (uint32_t)state & 16383};

    return view;
}

/* The next word after the one that *view was unpacked from. */
static inline uint64_t rlr_window_pack_next(const rlr_window_view_t *view)
{
    return (uint64_t)(view->sequence + 1) << 39 | (uint64_t)view->phase << 37
        | (uint64_t)view->era << 28 | (uint64_t)view->head << 21
        | (uint64_t)view->length << 14 | (uint64_t)view->open;
}

/* Eras from the view's last change to *now; negative if *now is earlier. */
static inline int32_t rlr_window_eras_since(const rlr_window_view_t *view,
                                            const rlr_time_t *now)
{
    uint32_t era = (uint32_t)(now->ceil_ms >> RLR_ERA_SHIFT);
    uint32_t difference = (era - view->era) << (32 - RLR_ERA_BITS);

    return (int32_t)difference >> (32 - RLR_ERA_BITS);
}

/* Like rlr_window_pack_next(), with the era of *now if that is later. */
static inline uint64_t rlr_window_next(rlr_window_view_t *view,
                                       const rlr_time_t *now)
{
    if (rlr_window_eras_since(view, now) > 0) {
        view->era = (uint32_t)(now->ceil_ms >> RLR_ERA_SHIFT)
            & ((1U << RLR_ERA_BITS) - 1);
    }
    return rlr_window_pack_next(view);
}

static inline uint64_t rlr_window_pack_limit(rlr_limit_t limit)
{
    return (uint64_t)limit.interval_sec << 32 | limit.count;
}

static inline rlr_limit_t rlr_window_unpack_limit(uint64_t word)
{
    rlr_limit_t limit = {(uint32_t)word, (uint32_t)(word >> 32)};

    return limit;
}

/* Admissions of a full mark. */
static inline uint32_t rlr_window_per_mark(uint32_t count)
{
    return (count + RLR_WINDOW_MARKS - 1) / RLR_WINDOW_MARKS;
}

/* Admissions that the view counts. */
static inline uint32_t rlr_window_held(const rlr_window_view_t *view,
                                       uint32_t per_mark)
{
    return view->length == 0 ? 0 : (view->length - 1) * per_mark + view->open;
}

/* Ring index of the mark at `offset` from the oldest. */
static inline uint32_t rlr_window_index(const rlr_window_view_t *view,
                                        uint32_t offset)
{
    uint32_t index = view->head + offset;

    return index >= RLR_WINDOW_RING ? index - RLR_WINDOW_RING : index;
}

/* Acquire: a later load of the state returns at least the state that the mark
 * was written for. */
static inline uint32_t rlr_window_mark(const rlr_window_t *window,
                                       uint32_t index)
{
    return atomic_load_explicit(&window->marks[index], memory_order_acquire);
}

static inline void rlr_window_empty(rlr_window_view_t *view)
{
    view->head = rlr_window_index(view, view->length);
    view->length = 0;
    view->open = 0;
}

/* Removes the marks that have expired at *now from the view. */
void rlr_window_drop(rlr_window_view_t *view, const rlr_window_t *window,
                     uint32_t interval_ms, const rlr_time_t *now);

#endif

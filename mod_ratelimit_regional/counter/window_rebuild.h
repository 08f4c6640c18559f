/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving a window to another owner or limit. "Exclusive" functions need a lock
 * that belongs to the window; everything in window.h may run beside them.
 */
#ifndef RLR_WINDOW_REBUILD_H
#define RLR_WINDOW_REBUILD_H

#include "window.h"

/* What a window holds, apart from it: a copy for rebuilding. */
typedef struct rlr_window_copy_t {
    uint32_t count; /* admissions it stands for */
    uint32_t group; /* admissions of every mark but the last */
    uint32_t marks[RLR_WINDOW_MARKS]; /* oldest first, milliseconds */
} rlr_window_copy_t;

/* Copies what counts at `interval_sec` (0: the window's own interval). Any
 * process. Returns false, with an empty copy, while it is being rebuilt. */
bool rlr_window_copy(rlr_window_copy_t *copy, const rlr_window_t *window,
                     uint32_t interval_sec, const rlr_clock_t *clock);

/* Makes *copy what a window for `limit` can hold: for every moment at least as
 * many admissions since then as it held, and as `other` (NULL: none) holds. */
void rlr_window_copy_fit(rlr_window_copy_t *copy,
                         const rlr_window_copy_t *other, rlr_limit_t limit);

/*
 * Rebuilding, in three steps, so that the holder of the lock can write what
 * belongs to the new owner between the second and the third:
 *
 * close    stops all admissions and copies what counts at interval_sec (0: own)
 *          to *copy. With `only_dead`, returns false and changes nothing if
 *          the window is live.
 * begin    from here on, repair gives a window that holds *copy.
 * finish   the window is open, `owner`'s, for `limit`, and holds *copy, which
 *          the caller fitted to the limit before begin.
 *
 * A process that dies in between leaves the window closed: whoever has the
 * lock next calls repair, or close, which opens it without losing an
 * admission. Exclusive.
 */
bool rlr_window_close(rlr_window_copy_t *copy, rlr_window_t *window,
                      uint32_t interval_sec, bool only_dead,
                      const rlr_clock_t *clock);
void rlr_window_begin(rlr_window_t *window, const rlr_window_copy_t *copy,
                      const rlr_clock_t *clock);
void rlr_window_finish(rlr_window_t *window, uint64_t owner, rlr_limit_t limit,
                       const rlr_window_copy_t *copy);

/* Opens a window that a dead process left closed; an open one it leaves alone.
 * Exclusive. */
void rlr_window_repair(rlr_window_t *window);

/* For tests: NULL, or what is wrong with the window. Any process, but exact
 * only while no other process works on it. */
const char *rlr_window_validate(const rlr_window_t *window,
                                const rlr_clock_t *clock);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns a window to another owner or limit. "Exclusive": the caller holds a
 * lock that belongs to the window; all functions of window.h may run
 * concurrently. */
#ifndef RLR_WINDOW_REBUILD_H
#define RLR_WINDOW_REBUILD_H

#include "window.h"

/* A copy of what a window counts, for rebuilding. */
typedef struct rlr_window_copy_t {
    uint32_t count;    /* admissions counted */
    uint32_t per_mark; /* admissions of every mark but the last */
    uint32_t marks[RLR_WINDOW_MARKS]; /* oldest first, milliseconds */
} rlr_window_copy_t;

/* Copies the admissions of the last `interval_sec` seconds (0: the window's
 * own interval). Any process. Returns false, with an empty copy, during a
 * rebuild. */
bool rlr_window_copy(rlr_window_copy_t *copy, const rlr_window_t *window,
                     uint32_t interval_sec, const rlr_clock_t *clock);

/* Converts *copy to the group of `limit`: for every time it has at least as
 * many admissions since then as before, and as `other` (NULL: none) has. */
void rlr_window_copy_fit(rlr_window_copy_t *copy,
                         const rlr_window_copy_t *other, rlr_limit_t limit);

/*
 * Rebuilding takes three steps, so that the holder of the lock can write the
 * other data of the new owner between the second and the third:
 *
 *   close   stops all admissions and copies those of the last interval_sec
 *           seconds (0: own interval) to *copy. With `only_dead`, returns false
 *           without a change if the window is live.
 *   begin   from here on, repair yields a window that counts *copy.
 *   finish  the window is open for `owner` and `limit` and counts *copy, which
 *           the caller fitted to the limit before begin.
 *
 * A process that dies in between leaves the window closed. The next holder of
 * the lock calls repair or close, which open it without losing an admission.
 * Exclusive.
 */
bool rlr_window_close(rlr_window_copy_t *copy, rlr_window_t *window,
                      uint32_t interval_sec, bool only_dead,
                      const rlr_clock_t *clock);
void rlr_window_begin(rlr_window_t *window, const rlr_window_copy_t *copy,
                      const rlr_clock_t *clock);
void rlr_window_finish(rlr_window_t *window, uint64_t owner, rlr_limit_t limit,
                       const rlr_window_copy_t *copy);

/* Opens a window that a dead process left closed. Exclusive. */
void rlr_window_repair(rlr_window_t *window);

/* For tests: NULL, or an inconsistency of the window. Exact only while no
 * other process uses it. */
const char *rlr_window_validate(const rlr_window_t *window,
                                const rlr_clock_t *clock);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window: how many requests of one key were admitted in the last interval.
 * It is a sliding log. An entry of the log, a mark, stands for up to `per_mark`
 * admissions, the count divided by 64 and rounded up, and holds the time of the
 * last of them. In every interval at most `count` requests are admitted; a
 * request is refused only if at least count - (per_mark - 1) were admitted in
 * the last interval, so that limits up to 64 are exact. Nothing here allocates,
 * blocks or includes httpd.
 *
 * A window lies in shared memory, 8-byte aligned, 304 bytes long:
 *
 *    state     u64: marks in use, admissions in the newest (window_state.h)
 *    limit     u64: count in the low half, interval_sec in the high half
 *    owner     u64: the key that the window belongs to
 *    marks     70 x u32: milliseconds modulo 2^32
 *
 * All functions are lock-free, and a process may die at any instruction of
 * them. window_rebuild.h assigns a window to an owner and a limit.
 */
#ifndef RLR_WINDOW_H
#define RLR_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "limit.h"

/* Marks that may be in use at once. */
#define RLR_WINDOW_MARKS 64
/* Entries of the ring of marks. More than marks in use, so that the oldest
 * mark is never overwritten; the last one is spare for rebuilding. */
#define RLR_WINDOW_RING 70

typedef struct rlr_window_t {
    _Atomic uint64_t state;
    _Atomic uint64_t limit;
    _Atomic uint64_t owner;
    _Atomic uint32_t marks[RLR_WINDOW_RING];
} rlr_window_t;

typedef struct rlr_window_decision_t {
    bool admitted;
    /* Requests that would still be admitted now, after this one. */
    uint32_t remaining;
    /* Until the next admission if no other request arrives; 0: at once. */
    uint32_t wait_ms;
    /* Until `remaining` grows; 0 if nothing is counted. */
    uint32_t reset_ms;
    /* The time of the decision, between the call and the return. In its order,
     * each admission is at least an interval later than the one `count` before
     * it. */
    uint64_t at_ms;
} rlr_window_decision_t;

typedef enum rlr_window_result_t {
    RLR_WINDOW_DECIDED,
    /* No decision: the window belongs to another key or limit, or is being
     * rebuilt. The caller takes the window's lock and tries again. */
    RLR_WINDOW_CHANGED
} rlr_window_result_t;

/* Returns the limit that the window was built for; {0, 0} before the first
 * build. */
rlr_limit_t rlr_window_limit(const rlr_window_t *window);

/*
 * Requests one admission for `owner` from a window that was built for `limit`.
 * `cap` is the count at which to refuse: normally limit.count, less if keys
 * with a smaller count share the window. A refusal writes nothing. *decision
 * is set only with RLR_WINDOW_DECIDED.
 */
rlr_window_result_t rlr_window_admit(rlr_window_t *window, uint64_t owner,
                                     rlr_limit_t limit, uint32_t cap,
                                     const rlr_clock_t *clock,
                                     rlr_window_decision_t *decision);

/* Computes what rlr_window_admit() would decide, without charging: `remaining`
 * does not count the request. */
rlr_window_result_t rlr_window_peek(const rlr_window_t *window, uint64_t owner,
                                    rlr_limit_t limit, uint32_t cap,
                                    const rlr_clock_t *clock,
                                    rlr_window_decision_t *decision);

/* Removes all admissions of `owner`. Returns false, without a change, if the
 * window belongs to another key or is being rebuilt. */
bool rlr_window_reset(rlr_window_t *window, uint64_t owner);

/* Whether the window holds an admission of the last interval, or is being
 * rebuilt. */
bool rlr_window_is_live(const rlr_window_t *window, const rlr_clock_t *clock);

#endif

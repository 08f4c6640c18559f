/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The window: how many requests of one key were admitted in the last interval.
 * A sliding log whose entries ("marks") each stand for up to
 * group = ceil(count / 64) admissions and hold the time of the last of them.
 * At most `count` admissions in every interval; a refusal only when at least
 * count - (group - 1) were admitted in the last interval; exact up to 64.
 * Nothing here allocates, blocks, or knows about httpd.
 *
 * Shared memory, in an 8-byte aligned place, the same layout for all:
 *
 *      0  state   u64  see window.c: marks in use, admissions in the newest
 *      8  limit   u64  count (low half), interval_sec (high half)
 *     16  owner   u64  the key whose window this is
 *     24  marks   u32  x 70, milliseconds modulo 2^32
 *    304  end
 *
 * Everything here is lock-free and survives the death of a process at any
 * instruction. window_rebuild.h gives a window to an owner and a limit.
 */
#ifndef RLR_WINDOW_H
#define RLR_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#define RLR_LIMIT_COUNT_MAX        1000000U
#define RLR_LIMIT_INTERVAL_SEC_MAX 86400U

/* Marks that may be in use at once. */
#define RLR_WINDOW_MARKS 64
/* Places for marks: a place is never written while it is in use as the oldest
 * mark, and the last one is spare while a window is rebuilt. */
#define RLR_WINDOW_RING 70

/* `count` requests in every interval of `interval_sec` seconds. */
typedef struct rlr_limit_t {
    uint32_t count;        /* 1 .. RLR_LIMIT_COUNT_MAX */
    uint32_t interval_sec; /* 1 .. RLR_LIMIT_INTERVAL_SEC_MAX */
} rlr_limit_t;

typedef struct rlr_window_t {
    _Atomic uint64_t state;
    _Atomic uint64_t limit;
    _Atomic uint64_t owner;
    _Atomic uint32_t marks[RLR_WINDOW_RING];
} rlr_window_t;

typedef struct rlr_decision_t {
    bool admitted;
    /* Requests that would still be admitted now, this one already charged. */
    uint32_t remaining;
    /* Until a request is admitted if no other comes; 0 if one would be. */
    uint32_t wait_ms;
    /* Until `remaining` grows by itself; 0 if it is the whole count. */
    uint32_t reset_ms;
    /* The time of this decision, between the call and the return. Sorted by
     * it, each admission is at least an interval later than the one that is
     * `count` before it. */
    uint64_t at_ms;
} rlr_decision_t;

typedef enum rlr_window_result_t {
    RLR_WINDOW_DECIDED,
    /* No decision: the window is another key's, built for another limit, or
     * being rebuilt. The caller takes the window's lock and looks again. */
    RLR_WINDOW_CHANGED
} rlr_window_result_t;

/* Are both numbers in range? Every function here needs a valid limit. */
bool rlr_limit_valid(rlr_limit_t limit);

/* The limit that the window was built for; {0, 0} before the first build. */
rlr_limit_t rlr_window_limit(const rlr_window_t *window);

/*
 * Asks for one admission by `owner`. The window must have been built for
 * `limit`; `cap` is the count to refuse at, normally limit.count, less when
 * keys with a smaller count share the window.
 *
 * A refusal writes nothing. *decision is set only with RLR_WINDOW_DECIDED.
 */
rlr_window_result_t rlr_window_admit(rlr_window_t *window, uint64_t owner,
                                     rlr_limit_t limit, uint32_t cap,
                                     const rlr_clock_t *clock,
                                     rlr_decision_t *decision);

/*
 * What rlr_window_admit() would decide, without charging: `remaining` is what
 * is left before the request.
 */
rlr_window_result_t rlr_window_peek(const rlr_window_t *window, uint64_t owner,
                                    rlr_limit_t limit, uint32_t cap,
                                    const rlr_clock_t *clock,
                                    rlr_decision_t *decision);

/* Forgets all admissions of `owner`. Returns false, and does nothing, if the
 * window is another key's or being rebuilt. */
bool rlr_window_reset(rlr_window_t *window, uint64_t owner);

/* Does the window hold an admission that still counts, or is it being
 * rebuilt? */
bool rlr_window_is_live(const rlr_window_t *window, const rlr_clock_t *clock);

#endif

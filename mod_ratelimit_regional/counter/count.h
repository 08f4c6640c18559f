/* SPDX-License-Identifier: Apache-2.0 */
/* Counts outcomes per row and detects the refusals to log. Private to
 * table.c, which defines _GNU_SOURCE. */
#ifndef RLR_COUNT_H
#define RLR_COUNT_H

#include <sched.h>

#include "layout.h"

/* How far the last logged refusal may be ahead: by another processor's clock,
 * or because this thread was stopped after its decision. */
#define RLR_COUNT_AHEAD_MS 1000U

/* Whether this is the first refusal of the window in an interval. The only
 * write of a refusal, at most once per interval. */
static inline bool rlr_count_first_refusal(
    rlr_slot_t *slot, const rlr_window_decision_t *decision, rlr_limit_t limit)
{
    uint32_t now = (uint32_t)decision->at_ms;
    uint32_t logged = atomic_load_explicit(&slot->logged_ms,
                                           memory_order_relaxed);

    return now - logged >= limit.interval_sec * 1000
        && logged - now > RLR_COUNT_AHEAD_MS
        && atomic_compare_exchange_strong_explicit(&slot->logged_ms, &logged,
                                                   now, memory_order_relaxed,
                                                   memory_order_relaxed);
}

/* Relaxed: statistics, no other memory depends on them. */
static inline void rlr_count_one(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static inline void rlr_count_decision(const rlr_table_t *table,
                                      const rlr_table_request_t *request,
                                      const rlr_table_decision_t *decision)
{
    rlr_counter_t
        *line = &table->counters[(size_t)request->row * RLR_STRIPES
                                 + (uint32_t)sched_getcpu() % RLR_STRIPES];

    if (decision->window.admitted) {
        rlr_count_one(&line->admitted);
    }
    else if (request->dry_run) {
        rlr_count_one(&line->would_refuse);
    }
    else {
        rlr_count_one(&line->refused);
    }
    if (decision->overflow) {
        rlr_count_one(&line->overflow);
    }
}

#endif

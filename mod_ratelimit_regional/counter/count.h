/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted of answers: outcomes by rule, and the refusals that are worth
 * a line in the log. For table.c only, which defines _GNU_SOURCE. */
#ifndef RLR_TABLE_COUNT_H
#define RLR_TABLE_COUNT_H

#include <sched.h>

#include "layout.h"

/* Another processor's clock may be ahead, or this thread was stopped between
 * the decision and its note. */
#define RLR_TABLE_NOTICED_AHEAD_MS 1000U

/* One refusal per window and interval is worth a line in the log. The only
 * write of a refusal, and at most once in an interval. */
static inline bool rlr_table_note_refusal(rlr_table_slot_t *slot,
                                          const rlr_decision_t *decision,
                                          rlr_limit_t limit)
{
    uint32_t now = (uint32_t)decision->at_ms;
    uint32_t noticed = atomic_load_explicit(&slot->noticed,
                                            memory_order_relaxed);

    return now - noticed >= limit.interval_sec * 1000
        && noticed - now > RLR_TABLE_NOTICED_AHEAD_MS
        && atomic_compare_exchange_strong_explicit(&slot->noticed, &noticed,
                                                   now, memory_order_relaxed,
                                                   memory_order_relaxed);
}

/* Relaxed: sums for people, no other memory depends on them. */
static inline void rlr_table_add_one(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static inline void rlr_table_count_answer(const rlr_table_t *table,
                                          const rlr_table_request_t *request,
                                          const rlr_table_answer_t *answer)
{
    rlr_table_counter_t *line =
        &table->counters[(size_t)request->rule * RLR_TABLE_STRIPES
                         + (uint32_t)sched_getcpu() % RLR_TABLE_STRIPES];

    if (answer->decision.admitted) {
        rlr_table_add_one(&line->allowed);
    }
    else if (request->dry_run) {
        rlr_table_add_one(&line->would_refuse);
    }
    else {
        rlr_table_add_one(&line->refused);
    }
    if (answer->overflow) {
        rlr_table_add_one(&line->overflow);
    }
}

#endif

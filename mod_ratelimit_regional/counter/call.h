/* SPDX-License-Identifier: Apache-2.0 */
/* One decision under way: its arguments, and the call of a window. Private to
 * counter/. */
#ifndef RLR_CALL_H
#define RLR_CALL_H

#include "slot.h"

typedef struct rlr_call_t {
    const rlr_table_t *table;
    const rlr_table_request_t *request;
    const rlr_clock_t *clock;
    rlr_table_key_t key;
    /* The shared counter of the key while the key has no slot; see overflow.h.
     * For a key without a holder it is the key itself. */
    rlr_table_key_t shared;
    bool is_peek; /* decides without charging */
} rlr_call_t;

/* Charges the window, or peeks; see window.h for the arguments. False: no
 * decision, the window was built for another key or limit. */
static inline bool rlr_call_window(const rlr_call_t *call, rlr_window_t *window,
                                   uint64_t owner, rlr_limit_t limit,
                                   uint32_t cap,
                                   rlr_window_decision_t *decision)
{
    rlr_window_result_t result;

    if (call->is_peek) {
        result = rlr_window_peek(window, owner, limit, cap, call->clock,
                                 decision);
    }
    else {
        result = rlr_window_admit(window, owner, limit, cap, call->clock,
                                  decision);
    }
    return result == RLR_WINDOW_DECIDED;
}

#endif

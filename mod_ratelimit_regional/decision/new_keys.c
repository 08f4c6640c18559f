/* SPDX-License-Identifier: Apache-2.0 */
/* Limits new keys. */
#include "new_keys.h"

#define KNOWN_SEC 3600U

/* A known key holds two marks; its slot cannot be reused while either is
 * live. */
static const rlr_limit_t known_limit = {2, KNOWN_SEC};

/* Charges the second mark when the first has half expired, so that a key in
 * use always has a live mark and keeps its slot. */
static void stay_known(const rlr_table_t *table,
                       const rlr_table_request_t *known,
                       const rlr_clock_t *clock, rlr_table_decide_t *decide)
{
    rlr_table_decision_t decision;

    rlr_table_peek(table, known, clock, &decision);
    if (decision.window.admitted
        && decision.window.reset_ms < KNOWN_SEC * 1000 / 2) {
        decide(table, known, clock, &decision);
    }
}

bool rlr_new_keys_admit(const rlr_table_t *table, rlr_table_request_t *known,
                        const rlr_table_request_t *fresh,
                        const rlr_clock_t *clock, rlr_table_decide_t *decide)
{
    rlr_table_decision_t decision;

    known->limit = known_limit;
    if (rlr_table_knows(table, known)) {
        stay_known(table, known, clock, decide);
        return true;
    }
    decide(table, fresh, clock, &decision);
    if (!decision.window.admitted && !fresh->dry_run) {
        return false;
    }
    decide(table, known, clock, &decision);
    return true;
}

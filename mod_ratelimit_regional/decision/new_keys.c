/* SPDX-License-Identifier: Apache-2.0 */
/* Holds new keys back; see brake.h. */
#include "new_keys.h"

#define KNOWN_SEC 3600U

/* A key is known as long as its place is not needed for another one, which it
 * never is while one of the two counts. */
static const rlr_limit_t known_limit = {2, KNOWN_SEC};

/* The second is charged when the first is half over, so that one always counts
 * of a key that is in use: nobody else's new keys can take its place. */
static void stay_known(const rlr_table_t *table,
                       const rlr_table_request_t *known,
                       const rlr_clock_t *clock, rlr_brake_count_t *count)
{
    rlr_table_answer_t answer;

    rlr_table_peek(table, known, clock, &answer);
    if (answer.decision.admitted
        && answer.decision.reset_ms < KNOWN_SEC * 1000 / 2) {
        count(table, known, clock, &answer);
    }
}

bool rlr_brake_admit(const rlr_table_t *table, rlr_table_request_t *known,
                     const rlr_table_request_t *fresh, const rlr_clock_t *clock,
                     rlr_brake_count_t *count)
{
    rlr_table_answer_t answer;

    known->limit = known_limit;
    if (rlr_table_knows(table, known)) {
        stay_known(table, known, clock, count);
        return true;
    }
    count(table, fresh, clock, &answer);
    if (!answer.decision.admitted && !fresh->dry_run) {
        return false;
    }
    count(table, known, clock, &answer);
    return true;
}

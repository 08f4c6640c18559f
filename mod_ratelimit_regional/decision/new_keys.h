/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RateLimitNewIdentities: how many keys that were not seen before an address
 * may bring. A key that was let in is known for an hour, and stays so
 * as long as it comes every half hour. No httpd here.
 */
#ifndef RLR_BRAKE_H
#define RLR_BRAKE_H

#include "../counter/table.h"

/* rlr_table_admit, or, for a question, rlr_table_peek. */
typedef void rlr_brake_count_t(const rlr_table_t *table,
                               const rlr_table_request_t *request,
                               const rlr_clock_t *clock,
                               rlr_table_answer_t *answer);

/*
 * Whether a key may enter: it is known, or its address may still bring new
 * ones. `known` is the key in the row of keys that have been let in, whose
 * limit is set here; `fresh` the address in the row of new keys. In a dry run
 * every key may.
 */
bool rlr_brake_admit(const rlr_table_t *table, rlr_table_request_t *known,
                     const rlr_table_request_t *fresh, const rlr_clock_t *clock,
                     rlr_brake_count_t *count);

#endif

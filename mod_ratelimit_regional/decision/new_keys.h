/* SPDX-License-Identifier: Apache-2.0 */
/* RateLimitNewIdentities: limits the new keys of an address. An admitted key
 * is known for an hour, and remains known while it is used every half hour. No
 * httpd here. */
#ifndef RLR_NEW_KEYS_H
#define RLR_NEW_KEYS_H

#include "../counter/table.h"

/*
 * Whether a key is admitted: it is known, or its address may send another new
 * key. `known` is the key in the row of known keys; its limit is set here.
 * `fresh` is the address in the row of new keys. A dry run admits every key.
 * decide: rlr_table_admit, or rlr_table_peek for a query.
 */
bool rlr_new_keys_admit(const rlr_table_t *table, rlr_table_request_t *known,
                        const rlr_table_request_t *fresh,
                        const rlr_clock_t *clock, rlr_table_decide_t *decide);

#endif

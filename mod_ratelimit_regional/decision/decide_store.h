/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions by the store of the region, and without it. */
#ifndef RLR_DECIDE_STORE_H
#define RLR_DECIDE_STORE_H

#include "../config/vhost.h"

/* Decides on the request of a virtual host with a store; row is the name of its
 * row. */
typedef void rlr_decide_store_t(const rlr_vhost_t *vhost, const char *row,
                                const rlr_table_request_t *request,
                                rlr_table_decision_t *decision);

/* Charges the request, and counts the outcome. */
rlr_decide_store_t rlr_decide_store_admit;

/* Estimates what would be decided. */
rlr_decide_store_t rlr_decide_store_peek;

/* Removes the key's admissions at all hosts; false: the store did not
 * reply. */
bool rlr_decide_store_reset(const rlr_vhost_t *vhost, const char *row,
                            const rlr_table_request_t *request);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One exchange of a worker with the store: sends pending requests, and
 * heartbeats of partitions that are due, and takes the replies. */
#ifndef RLR_EXCHANGE_H
#define RLR_EXCHANGE_H

#include "flight.h"

/* Sends the pending requests, a list, and finishes all of them, but for those
 * sent to a node of a cluster that is slower than the timeout: the next
 * exchanges take its replies. If a later configuration has another store, it
 * sends nothing. Returns NULL, or an error, valid until the next
 * call. scratch is cleared by the caller. */
const char *rlr_exchange_run(rlr_exchange_t *exchange,
                             rlr_pending_request_t *pending_requests,
                             apr_pool_t *scratch);

/* Whether replies are outstanding, or the connection has just failed: the next
 * exchange should be soon. */
bool rlr_exchange_is_waiting(const rlr_exchange_t *exchange);

#endif

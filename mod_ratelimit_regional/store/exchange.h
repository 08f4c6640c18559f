/* SPDX-License-Identifier: Apache-2.0 */
/* One exchange of a worker with the store: sends pending requests, and
 * heartbeats of partitions that are due, and takes the replies. */
#ifndef RLR_EXCHANGE_H
#define RLR_EXCHANGE_H

#include "../counter/clock.h"
#include "../group/ledger.h"
#include "away.h"
#include "connection.h"
#include "queue.h"

typedef struct rlr_exchange_t {
    const rlr_ledger_t *ledger;
    rlr_member_config_t member;
    rlr_store_connection_t *connection;
    rlr_queue_t *queue;
    uint64_t attempt_ms; /* when it may connect again */
    rlr_away_t away;
    uint64_t tag;      /* of the last mark */
    bool is_answered;  /* a server has taken a call of this exchange */
    bool is_refused;   /* the first error: the store has no number for it */
    bool is_clock_set; /* a reply of this exchange says so */
} rlr_exchange_t;

/* Sends the pending requests, a list, and finishes all of them. Returns NULL,
 * or an error, valid until the next call. scratch is cleared by the caller. */
const char *rlr_exchange_run(rlr_exchange_t *exchange,
                             rlr_pending_request_t *pending_requests,
                             apr_pool_t *scratch);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a worker that are under way, one of each partition at most. */
#ifndef RLR_FLIGHT_H
#define RLR_FLIGHT_H

#include "../counter/clock.h"
#include "../protocol/shared.h"
#include "../protocol/period.h"
#include "away.h"
#include "connection.h"
#include "queue.h"

/* After an exclusive call no other one of the partition is sent for this long,
 * unless it is answered. */
#define RLR_FLIGHT_EXCLUSIVE_MS (2 * RLR_PERIOD_CALL_MS)

typedef struct rlr_flight_t {
    bool is_sent; /* and its reply has not been taken */
    uint32_t partition;
    uint32_t generation;
    uint64_t sent_ms;
    rlr_message_call_t call;
    rlr_message_item_t *items;
    rlr_pending_request_t
        *pending_requests[RLR_CONNECTION_ITEMS_MAX]; /* of the items */
    apr_pool_t *pool; /* of the call, until the next one */
} rlr_flight_t;

/* The state of a worker, used by its thread only; the caller sets tag and
 * the members up to pool. */
typedef struct rlr_exchange_t {
    const rlr_shared_t *shared;
    rlr_member_config_t member;
    rlr_connection_t *connection;
    rlr_queue_t *queue;
    uint32_t timeout_ms; /* RateLimitStoreTimeout */
    apr_pool_t *pool;    /* of calls under way */
    uint64_t attempt_ms; /* before that it does not connect again */
    rlr_away_t away;
    uint64_t tag;      /* of the last mark or reset */
    bool is_failing;   /* the last exchange has failed for all partitions */
    bool has_repeated; /* in this exchange, a call whose connection had ended */
    bool may_repeat;   /* no call of this exchange has been repeated */
    bool may_reopen;   /* the first error is that the connection had ended */
    rlr_pending_request_t *repeated; /* to be sent again, a list */
    const char *error;   /* the first one of this exchange, or NULL */
    apr_pool_t *scratch; /* of this exchange; the caller's */
    bool is_answered;    /* a server has executed a call of this exchange */
    bool is_refused;   /* the first error is that the store refuses the host */
    bool is_clock_set; /* a reply of this exchange shows that it was set */
    uint32_t slow;     /* partitions, a bit each, whose last reply was late */
    uint32_t
        blocked; /* partitions, a bit each, to which no call may be sent now */
    rlr_flight_t flights[RLR_SHARED_PARTITIONS];
} rlr_exchange_t;

/* Fills a call of the partition, if one is due and may be sent, with pending
 * requests, which it takes from the list. The partition's lock is held. */
bool rlr_flight_fill_locked(rlr_exchange_t *exchange, rlr_flight_t *flight,
                            rlr_partition_state_t *state,
                            rlr_pending_request_t **list);

#endif

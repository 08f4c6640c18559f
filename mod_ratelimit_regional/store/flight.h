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

/* In which another process sends no call of the partition. */
#define RLR_FLIGHT_ALONE_MS (2 * RLR_PERIOD_CALL_MS)

typedef struct rlr_flight_t {
    bool is_sent; /* its reply has not been taken */
    uint32_t partition;
    uint32_t generation;
    uint64_t sent_ms;
    rlr_message_call_t call;
    rlr_message_item_t *items;
    rlr_pending_request_t
        *pending_requests[RLR_CONNECTION_ITEMS_MAX]; /* of the items */
    apr_pool_t *pool; /* of the call, until the next one */
} rlr_flight_t;

/* Of one thread; the first ones are set by the caller. */
typedef struct rlr_exchange_t {
    const rlr_shared_t *shared;
    rlr_member_config_t member;
    rlr_connection_t *connection;
    rlr_queue_t *queue;
    uint32_t timeout_ms; /* RateLimitStoreTimeout */
    apr_pool_t *pool;    /* of calls under way */
    uint64_t attempt_ms; /* when it may connect again */
    rlr_away_t away;
    uint64_t tag;    /* of the last mark */
    bool is_failing; /* the last exchange has failed for all partitions */
    bool has_lost;   /* a connection that has ended, in this exchange */
    bool may_repeat; /* not yet in this exchange */
    bool may_reopen; /* the first error: the connection had ended */
    rlr_pending_request_t *repeated; /* to be sent again, a list */
    const char *error;   /* the first one of this exchange, or NULL */
    apr_pool_t *scratch; /* of this exchange; the caller's */
    bool is_answered;    /* a server has executed a call of this exchange */
    bool is_refused;     /* the first error: the store has no number for it */
    bool is_clock_set;   /* a reply of this exchange says so */
    uint32_t slow;       /* partitions, a bit each, whose last reply was late */
    uint32_t held;       /* those that no call may be sent to now */
    rlr_flight_t flights[RLR_SHARED_PARTITIONS];
} rlr_exchange_t;

rlr_time_t rlr_flight_time(void);

/* Fills a call of the partition, if one is due and may be sent, with pending
 * requests, which it takes from the list. The partition's lock is held. */
bool rlr_flight_fill_locked(rlr_exchange_t *exchange, rlr_flight_t *flight,
                            rlr_partition_state_t *state,
                            rlr_pending_request_t **list);

#endif

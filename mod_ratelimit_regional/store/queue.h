/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of a child that wait for the store. Those for the same key share one
 * pending request, until it is sent. A worker thread sends the pending
 * requests. A request waits for RateLimitStoreTimeout at most, also for an
 * earlier call that is under way before its own. While the store is slow, and
 * for a wait that is not brief, it needs a slot.
 */
#ifndef RLR_QUEUE_H
#define RLR_QUEUE_H

#include <pthread.h>

#include <apr_pools.h>

#include "../protocol/shared.h"

typedef enum rlr_queue_result_t {
    RLR_QUEUE_ADMITTED,
    RLR_QUEUE_REFUSED,
    RLR_QUEUE_LATE,     /* no reply in time */
    RLR_QUEUE_BUSY,     /* it needs a slot, and there was none */
    RLR_QUEUE_UNDECIDED /* no reply that can be used */
} rlr_queue_result_t;

/* A pending request to the store. */
typedef struct rlr_pending_request_t {
    struct rlr_pending_request_t *next;
    unsigned char key[RLR_MESSAGE_KEY_BYTES];
    rlr_limit_t limit;
    bool is_reset; /* removes the key instead */
    /* Set by the worker. */
    rlr_message_item_t item;
    /* Guarded by the queue's lock. */
    uint32_t waiting;  /* requests, when it is sent */
    uint32_t admitted; /* of them, not yet taken */
    uint32_t threads;  /* that wait */
    bool is_sent;
    bool is_done;
    bool is_decided;
    uint64_t sent_us;
    pthread_cond_t done;
} rlr_pending_request_t;

typedef struct rlr_queue_t rlr_queue_t;

/* The longest brief wait, to be sent, and again for the reply. A store that
 * takes longer for an answer to a call is slow. */
#define RLR_QUEUE_BRIEF_MS 20U

/* Makes a queue, in pool; threads wait for timeout_us at most; of this without
 * a slot for brief_ms at most, which may be 0, to be sent, and again for the
 * reply. NULL: no memory for locks. */
rlr_queue_t *rlr_queue_make(const rlr_wait_slots_t *slots, uint32_t timeout_us,
                            uint32_t brief_ms, apr_pool_t *pool);

/* Whether the store is away for the key's partition: requests are not sent to
 * it. No lock. */
bool rlr_queue_is_away(const rlr_queue_t *queue, const unsigned char *key);

/* Requests one admission for a client, of which `client` is a hash, and waits
 * for the decision. */
rlr_queue_result_t rlr_queue_request(rlr_queue_t *queue,
                                     const unsigned char *key,
                                     rlr_limit_t limit, uint32_t client);

/* Requests more for a lease, without waiting. */
void rlr_queue_refill(rlr_queue_t *queue, const unsigned char *key,
                      rlr_limit_t limit);

/* Removes the key at the store, and waits for the reply for up to a second;
 * false: it may not be removed. */
bool rlr_queue_reset(rlr_queue_t *queue, const unsigned char *key);

/* Sets for which partitions, a bit each, the store is away: no request waits
 * for them. */
void rlr_queue_set_away(rlr_queue_t *queue, uint32_t partitions);

/* For the worker: takes all pending requests, a list, or waits for one until
 * wait_us have passed; NULL: there is none. They belong to the worker until it
 * finishes each of them. */
rlr_pending_request_t *rlr_queue_take(rlr_queue_t *queue, uint32_t wait_us);
void rlr_queue_finish(rlr_queue_t *queue, rlr_pending_request_t *pending,
                      bool is_decided, uint32_t admitted);

/* The store has answered a call after took_ms: whether it is slow. */
void rlr_queue_note_answer(rlr_queue_t *queue, uint64_t took_ms);

/* Finishes all of a list, undecided. */
void rlr_queue_drop(rlr_queue_t *queue, rlr_pending_request_t *list);

/* Ends waits of the worker. */
void rlr_queue_stop(rlr_queue_t *queue);
bool rlr_queue_is_stopped(rlr_queue_t *queue);

#endif

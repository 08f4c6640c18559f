/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions for the hosts of a region together (RateLimitStore). */
#ifndef RLR_STORE_H
#define RLR_STORE_H

#include <apr_pools.h>

#include "../protocol/shared.h"
#include "address.h"
#include "queue.h"

/* RateLimitStoreFailure */
typedef enum rlr_failure_t {
    RLR_FAILURE_LOCAL,
    RLR_FAILURE_CLOSED,
    RLR_FAILURE_OPEN
} rlr_failure_t;

/* The directives; read-only after the configuration. */
typedef struct rlr_store_config_t {
    rlr_connection_config_t connection;
    uint32_t hosts;
    uint32_t timeout_ms;
    uint32_t share_ms;
    rlr_failure_t failure;
} rlr_store_config_t;

/* This host, for the others. */
typedef struct rlr_store_host_t {
    const char *name;
    const char *rules;    /* a line for each, for operators */
    uint32_t longest_sec; /* the longest interval, with overrides */
} rlr_store_host_t;

/* A child's access to the store; `shared` is that of all children. */
typedef struct rlr_store_t {
    const rlr_store_config_t *config;
    rlr_shared_t shared;
    rlr_member_config_t member;
    rlr_store_host_t host; /* this one */
    rlr_queue_t *queue;    /* set in each child; NULL before */
} rlr_store_t;

/* Sets *store for that memory and host, without a queue. */
void rlr_store_init(rlr_store_t *store, const rlr_store_config_t *config,
                    const rlr_shared_t *shared, const rlr_store_host_t *host);

/* Lets processes of configurations with another address, M or S call the store
 * no more. */
void rlr_store_use_store(rlr_store_t *store, apr_pool_t *ptemp);

/* The longest name of a row, and identity. */
#define RLR_STORE_ROW_MAX      255
#define RLR_STORE_IDENTITY_MAX 512

/* Returns the key by which all hosts know an identity of a row. */
void rlr_store_key(unsigned char key[RLR_MESSAGE_KEY_BYTES], const char *row,
                   const void *identity, size_t length);

/* Whether the store is away for the key, so that no request is sent to it. */
bool rlr_store_is_away(const rlr_store_t *store, const unsigned char *key);

/* Requests one admission for a client, of which `client` is a hash; *first: the
 * first refusal of the key in an interval, to be logged. May wait for the
 * store. Unless rlr_stats_is_decided() there is no decision by the store or a
 * lease. */
rlr_stats_outcome_t rlr_store_admit(const rlr_store_t *store,
                                    const unsigned char *key, rlr_limit_t limit,
                                    uint32_t client,
                                    rlr_window_decision_t *decision,
                                    bool *first);

/* Estimates from the last reply of the store, without asking it; `remaining`
 * does not count the request. False: the host would decide without the
 * store. */
bool rlr_store_peek(const rlr_store_t *store, const unsigned char *key,
                    rlr_limit_t limit, rlr_window_decision_t *decision);

/* Whether nothing is admitted yet under some rule because the group has just
 * started; *left_ms: for how long under the limit of the longest interval, at
 * least. */
bool rlr_store_is_starting(const rlr_store_t *store,
                           const rlr_shared_summary_t *summary,
                           uint64_t *left_ms);

/*
 * Begins a decision by the host's own share, after no decision. Returns it as a
 * limit; count 0: none, and nothing has begun, and *wait_ms is how long until
 * it may be otherwise. The caller ends it: until then no call is sent to the
 * store for the key's partition, and other decisions of the partition wait, for
 * a second at most.
 */
rlr_limit_t rlr_store_begin_share(const rlr_store_t *store,
                                  const unsigned char *key, rlr_limit_t limit,
                                  uint32_t *wait_ms);

/* After an admission of the share: it counts from now on. False: the process
 * was stopped in between, and the share has ended; nothing may be admitted. */
bool rlr_store_keep_share(const rlr_store_t *store, const unsigned char *key,
                          rlr_limit_t limit);
void rlr_store_end_share(const rlr_store_t *store, const unsigned char *key);

/* Returns the share that rlr_store_begin_share() would, and begins nothing. */
rlr_limit_t rlr_store_peek_share(const rlr_store_t *store,
                                 const unsigned char *key, rlr_limit_t limit,
                                 uint32_t *wait_ms);

/* Removes all admissions of the key, at all hosts within a second; false: the
 * store did not reply. */
bool rlr_store_reset(const rlr_store_t *store, const unsigned char *key,
                     rlr_limit_t limit);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* State of the fair queue of dedicated batches; fair_queue.h has the
 * functions. */
#ifndef AGENT_SUPERVISOR_SHARE_H
#define AGENT_SUPERVISOR_SHARE_H

#include <apr_hash.h>

#include "../../core/uuid.h"
#include "../base/ring.h"

typedef struct agent_share_t agent_share_t;
typedef APR_RING_HEAD(agent_share_ring_t, agent_share_t) agent_share_ring_t;
typedef APR_RING_HEAD(agent_batch_ring_t, agent_batch_t) agent_batch_ring_t;

typedef enum agent_share_level_t {
    AGENT_SHARE_ACCOUNT,
    AGENT_SHARE_DEPLOYMENT,
    AGENT_SHARE_RUN,
    AGENT_SHARE_LEVELS
} agent_share_level_t;

/* The share of an account, deployment or run in the part of its owner, the
 * level above; the root has the whole connection. */
struct agent_share_t {
    /* Among the runs with batches, the owner's idle shares or the free ones. */
    APR_RING_ENTRY(agent_share_t) link;
    agent_share_t *owner;
    agent_share_level_t level;
    char id[AGENT_UUID_SIZE];
    /* The start tag of its next attempt, which is the finish tag of its last
     * one, or the owner's virtual time when it began to wait. */
    apr_interval_time_t tag;
    /* How many dedicated batches wait or are in flight; of a run: these, the
     * first one first. It got the first of them as the entered-th share. */
    int batches;
    agent_batch_ring_t queue;
    apr_uint64_t entered;
    /* Of the shares that it owns: their virtual time; use that is not part of
     * it yet; how many have batches; those without, not yet forgotten. */
    apr_interval_time_t time;
    apr_interval_time_t rest;
    int active;
    agent_share_ring_t idle;
};

typedef struct agent_fair_queue_t {
    agent_share_t root;
    /* Id -> share, of each level. */
    apr_hash_t *shares[AGENT_SHARE_LEVELS];
    /* Runs with batches; shares to be used again. */
    agent_share_ring_t runs;
    agent_share_ring_t free;
    apr_uint64_t entered;
    /* Shared batches, in order; how many were made. */
    agent_batch_ring_t shared;
    apr_uint64_t made;
} agent_fair_queue_t;

/* A member of each batch. */
typedef struct agent_batch_place_t {
    /* Among the shared batches, or the dedicated ones of the run. */
    APR_RING_ENTRY(agent_batch_t) link;
    /* The number of a shared batch: these are sent in this order. */
    apr_uint64_t number;
    /* Of a dedicated one: its run, and the number of the shared batch that has
     * to be saved before it; 0: none. */
    agent_share_t *share;
    apr_uint64_t after;
} agent_batch_place_t;

#endif

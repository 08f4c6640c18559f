/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which dedicated batch is sent next. They share one connection, on which an
 * attempt may take until the time limit of a statement. Hierarchical start-time
 * fair queueing: accounts share the connection, the deployments of each its
 * part, the runs of a deployment the part of that one. README.md has the rules.
 */
#ifndef AGENT_SUPERVISOR_FAIR_QUEUE_H
#define AGENT_SUPERVISOR_FAIR_QUEUE_H

#include <stdbool.h>

#include <apr_hash.h>

#include "../../core/uuid.h"
#include "../base/context.h"
#include "../base/ring.h"
#include "account_map.h"
#include "faulty.h"

typedef struct agent_batch_t agent_batch_t;
typedef APR_RING_HEAD(agent_batch_ring_t, agent_batch_t) agent_batch_ring_t;

typedef struct agent_fair_share_t agent_fair_share_t;
typedef APR_RING_HEAD(agent_fair_share_ring_t,
                      agent_fair_share_t) agent_fair_share_ring_t;

typedef enum agent_fair_level_t {
    AGENT_FAIR_ACCOUNT,
    AGENT_FAIR_DEPLOYMENT,
    AGENT_FAIR_RUN,
    AGENT_FAIR_LEVELS
} agent_fair_level_t;

/* The share of an account, deployment or run in the part of its owner, the
 * level above; the root has the whole connection. */
struct agent_fair_share_t {
    /* Among the runs with batches, the owner's idle shares or the free ones. */
    APR_RING_ENTRY(agent_fair_share_t) link;
    agent_fair_share_t *owner;
    agent_fair_level_t level;
    char id[AGENT_UUID_SIZE];
    /* The start tag of its next attempt, which is the finish tag of its last
     * one, or the owner's virtual time when the share became active. */
    apr_interval_time_t start_tag;
    /* Dedicated batches that wait or are in flight; of a run: these, the first
     * one first. The share was the sequence-th that became active. */
    int batches;
    agent_batch_ring_t queue;
    apr_uint64_t sequence;
    /* Of the shares that it owns: their virtual time; use that is not part of
     * it yet; the number of those with batches; those without, not yet freed.
     */
    apr_interval_time_t virtual_time;
    apr_interval_time_t remainder;
    int active;
    agent_fair_share_ring_t idle;
};

typedef struct agent_fair_queue_t {
    const agent_context_t *context;
    const agent_account_map_t *accounts;
    const agent_faulty_table_t *faulty;
    agent_fair_share_t root;
    /* Id -> share, of each level. */
    apr_hash_t *shares[AGENT_FAIR_LEVELS];
    /* Runs with batches; shares to be used again. */
    agent_fair_share_ring_t runs;
    agent_fair_share_ring_t free;
    apr_uint64_t sequence;
} agent_fair_queue_t;

/* The pointers must stay valid as long as the queue. */
void agent_fair_queue_init(agent_fair_queue_t *queue,
                           const agent_context_t *context,
                           const agent_account_map_t *accounts,
                           const agent_faulty_table_t *faulty);

bool agent_fair_queue_is_empty(const agent_fair_queue_t *queue);

/* Inserts a batch before another one of its run; later == NULL: as the last
 * one. Shares that had none begin at the owner's virtual time, or at their
 * finish tag if that is later. */
void agent_fair_queue_insert(agent_fair_queue_t *queue, agent_batch_t *batch,
                             const char *deployment_id, agent_batch_t *later);

/* Removes a batch; one that is in flight has been saved. Frees idle shares
 * whose finish tag has passed. */
void agent_fair_queue_remove(agent_fair_queue_t *queue, agent_batch_t *batch);

/* Return the first and the last batch of a run, and the one after or before
 * another one; NULL: there is none. run_id: 36 bytes. */
agent_batch_t *agent_fair_queue_first_of(const agent_fair_queue_t *queue,
                                         const char *run_id);
agent_batch_t *agent_fair_queue_last_of(const agent_fair_queue_t *queue,
                                        const char *run_id);
agent_batch_t *agent_fair_queue_next_of(const agent_batch_t *batch);
agent_batch_t *agent_fair_queue_previous_of(const agent_batch_t *batch);

/* Returns any batch; NULL: the queue is empty. */
agent_batch_t *agent_fair_queue_first(const agent_fair_queue_t *queue);

/* Returns the id of the batch's deployment. */
const char *agent_fair_queue_deployment(const agent_batch_t *batch);

/* Returns when the batch may be sent: when it is due, and its deployment does
 * not pause. */
apr_time_t agent_fair_queue_due(const agent_fair_queue_t *queue,
                                const agent_batch_t *batch);

/* Makes all batches due now. */
void agent_fair_queue_flush(agent_fair_queue_t *queue);

/* Whether a batch may be sent now. */
typedef bool agent_fair_queue_test_t(const void *part,
                                     const agent_batch_t *batch);

/*
 * Returns the batch to be sent first, which may not be due yet; NULL: none may
 * be sent. oldest_shared: the number of the oldest shared batch; batches that
 * wait for it, or for a later one, are left out, and those that may_send does
 * not allow; may_send may be NULL.
 *
 * Of the batches that are due it is one of the account with the least start
 * tag, of these one of the deployment with the least, of these that of the run
 * with the least. Of equal accounts, and deployments, the newest precedes; of
 * equal runs the oldest.
 */
agent_batch_t *agent_fair_queue_next(const agent_fair_queue_t *queue,
                                     apr_uint64_t oldest_shared,
                                     agent_fair_queue_test_t *may_send,
                                     const void *part);

/* The batch is sent: the virtual times reach the start tags of its shares. */
void agent_fair_queue_begin(const agent_batch_t *batch);

/* Charge the shares of a batch: for the time since it was sent; for that time.
 */
void agent_fair_queue_charge(const agent_fair_queue_t *queue,
                             const agent_batch_t *batch);
void agent_fair_queue_charge_time(const agent_batch_t *batch,
                                  apr_interval_time_t used);

#endif

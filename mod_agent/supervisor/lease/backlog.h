/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the bytes of output that are not committed, and decides who may add
 * more. An account has at most three quarters of the room that the others
 * leave, a deployment half of what the other deployments leave, and a run half
 * of what the other runs of its deployment leave of that: so there is always
 * room for one that has little, whatever another one sends. An account without
 * bytes may add a line of any length; within its account's room so may a
 * deployment without bytes, or a run without any.
 */
#ifndef AGENT_SUPERVISOR_BACKLOG_H
#define AGENT_SUPERVISOR_BACKLOG_H

#include <stdbool.h>

#include <apr_hash.h>

#include "../base/context.h"
#include "../base/ring.h"
#include "account_map.h"
#include "credit_state.h"

/* Limits of all shared batches, and of all dedicated ones with the credit for
 * them. No runner is read while the shared batches, or both together, are at
 * their limit (a batch that is split becomes dedicated ones). */
#define AGENT_BATCH_MAX_SHARED    ((apr_size_t)32 * 1024 * 1024)
#define AGENT_BATCH_MAX_DEDICATED ((apr_size_t)64 * 1024 * 1024)

/* More room in dedicated batches, for lines of up to 1 MB
 * (AGENT_CREDIT_MEDIUM), also when their account has no other room left. */
#define AGENT_BATCH_MEDIUM_ROOM ((apr_size_t)4 * 1024 * 1024)

typedef enum agent_backlog_kind_t {
    /* Bytes of lines in shared batches. */
    AGENT_BACKLOG_SHARED,
    /* Bytes of lines in dedicated batches, and of long arguments. */
    AGENT_BACKLOG_DEDICATED,
    /* Bytes that credit reserves in dedicated batches. */
    AGENT_BACKLOG_CREDIT,
    /* Of DEDICATED and CREDIT, the bytes of lines of up to AGENT_CREDIT_MEDIUM.
     */
    AGENT_BACKLOG_MEDIUM,
    /* The cost (batch_size.h), not bytes, of the lines in shared batches that
     * are not to move. */
    AGENT_BACKLOG_COST,
    AGENT_BACKLOG_KINDS
} agent_backlog_kind_t;

typedef struct agent_backlog_t agent_backlog_t;
typedef APR_RING_HEAD(agent_backlog_ring_t,
                      agent_backlog_t) agent_backlog_ring_t;

typedef struct agent_backlog_table_t {
    const agent_context_t *context;
    const agent_account_map_t *accounts;
    /* Of all deployments. */
    apr_size_t sums[AGENT_BACKLOG_KINDS];
    /* Id -> backlog, of those that have bytes. */
    apr_hash_t *by_deployment;
    apr_hash_t *by_account;
    /* Memory of those without bytes, used again. */
    agent_backlog_ring_t unused;
    /* Deployments that were slow. */
    agent_backlog_ring_t slow;
    /* The number of this iteration of the loop. */
    apr_uint64_t iteration;
} agent_backlog_table_t;

/* The pointers must stay valid as long as the table. */
void agent_backlog_init(agent_backlog_table_t *table,
                        const agent_context_t *context,
                        const agent_account_map_t *accounts);

/* Add bytes to the count of the deployment, and subtract them. */
void agent_backlog_add(agent_backlog_table_t *table, const char *deployment_id,
                       agent_backlog_kind_t kind, apr_size_t bytes);
void agent_backlog_remove(agent_backlog_table_t *table,
                          const char *deployment_id, agent_backlog_kind_t kind,
                          apr_size_t bytes);

/* Returns the bytes of all deployments. */
static inline apr_size_t agent_backlog_sum(const agent_backlog_table_t *table,
                                           agent_backlog_kind_t kind)
{
    return table->sums[kind];
}

/* Whether a run of the deployment that has run_bytes in batches of the kind,
 * SHARED or DEDICATED, may add `bytes`. */
bool agent_backlog_has_share(const agent_backlog_table_t *table,
                             const char *deployment_id,
                             agent_backlog_kind_t kind, apr_size_t run_bytes,
                             apr_size_t bytes);

/* Whether the deployment could add `bytes` to dedicated batches if it had no
 * credit. */
bool agent_backlog_has_share_without_credit(const agent_backlog_table_t *table,
                                            const char *deployment_id,
                                            apr_size_t bytes);

/* Whether the deployment, with `bytes` more, would have less than half of its
 * share of dedicated batches if no deployment had credit. */
bool agent_backlog_is_half_free(const agent_backlog_table_t *table,
                                const char *deployment_id, apr_size_t bytes);

/* Whether `bytes` of short lines of the deployment may move to dedicated
 * batches: within its share, and within the room of all. */
bool agent_backlog_may_move(const agent_backlog_table_t *table,
                            const char *deployment_id, apr_size_t bytes);

/* Marks a deployment that made a shared batch slow, while it has lines: for 5
 * s, longer while it has more than half of its share of dedicated batches.
 * cost: of its lines that take AGENT_BATCH_SIZE_TARGET. */
void agent_backlog_set_slow(agent_backlog_table_t *table,
                            const char *deployment_id, apr_size_t cost);
bool agent_backlog_is_slow(const agent_backlog_table_t *table,
                           const char *deployment_id);

/* Whether the lines of slow deployments in shared batches take more than
 * AGENT_BATCH_SIZE_TARGET altogether. */
bool agent_backlog_is_any_slow(const agent_backlog_table_t *table);

/* Reserves the deployment's next free bytes in dedicated batches for a waiting
 * run, until the next call of agent_backlog_begin_iteration(). No effect for a
 * deployment without bytes. */
void agent_backlog_reserve(agent_backlog_table_t *table,
                           const char *deployment_id);
bool agent_backlog_is_reserved(const agent_backlog_table_t *table,
                               const char *deployment_id);
void agent_backlog_begin_iteration(agent_backlog_table_t *table);

#endif

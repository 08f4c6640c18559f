/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of releases: runs to be requeued (../statement/release_runs.c). A
 * release is sent only when all output of its run is committed: the next
 * attempt continues from there.
 */
#ifndef AGENT_SUPERVISOR_RELEASE_H
#define AGENT_SUPERVISOR_RELEASE_H

#include "../base/adaptive_limit.h"
#include "lease.h"

typedef struct agent_release_t {
    APR_RING_ENTRY(agent_release_t) link;
    agent_lease_key_t key;
    char deployment_id[AGENT_UUID_SIZE];
    /* Whether the attempt counts. */
    bool is_counted;
    /* The lease's next_max_shared. */
    int max_shared;
    const char *reason;
    /* Not NULL: the run is not requeued but ends in error, with this code and
     * the reason as message. */
    const char *error;
    /* Failures of a statement, and of one with this release alone. */
    agent_retry_t retry;
    /* It is in flight. */
    bool is_sent;
    /* It is to be sent again after the result. */
    bool is_repeated;
} agent_release_t;

APR_RING_HEAD(agent_release_ring_t, agent_release_t);
typedef struct agent_release_ring_t agent_release_ring_t;

typedef struct agent_release_queue_t {
    const agent_context_t *context;
    agent_release_ring_t waiting;
    agent_release_ring_t unused;
    /* agent_lease_key_t -> the release that waits or is in flight. */
    apr_hash_t *by_key;
    /* Runs that one statement may release, and those of the one in flight. */
    agent_adaptive_limit_t limit;
    int in_flight;
} agent_release_queue_t;

void agent_release_init(agent_release_queue_t *queue,
                        const agent_context_t *context);

/* Adds a release that requeues the run of the lease. counted: whether the
 * attempt counts; reason: a constant. */
void agent_release_add(agent_release_queue_t *queue, const agent_lease_t *lease,
                       bool counted, const char *reason);

/* Adds one that ends the run in error with fail_run. error, message: constants.
 */
void agent_release_give_up(agent_release_queue_t *queue,
                           const agent_lease_t *lease, const char *error,
                           const char *message);

/* Adds one of a run that was leased again under this key, uncounted, unless one
 * waits. A release in flight is sent again: the database may have executed it
 * before that claim. */
void agent_release_add_duplicate(agent_release_queue_t *queue,
                                 const agent_lease_key_t *key,
                                 const char *deployment_id, const char *reason);

/* Returns the release of a lease that waits or is in flight, or NULL. */
agent_release_t *agent_release_find(const agent_release_queue_t *queue,
                                    const agent_lease_key_t *key);

bool agent_release_is_empty(const agent_release_queue_t *queue);

/* Removes and frees a release whose statement succeeded. */
void agent_release_remove(agent_release_queue_t *queue,
                          agent_release_t *release);

/* Discards all releases: this worker is dead, or is about to be marked dead,
 * which releases its runs. */
void agent_release_clear(agent_release_queue_t *queue);

#endif

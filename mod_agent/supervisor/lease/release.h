/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs to give back to the queue. A release is sent only when everything the
 * run had said before is committed, so that the next attempt goes on from
 * there.
 */
#ifndef AGENT_SUPERVISOR_RELEASE_H
#define AGENT_SUPERVISOR_RELEASE_H

#include "../statement/database.h"
#include "lease.h"
#include "../limit.h"
#include "../ring.h"

typedef struct agent_release_t {
    APR_RING_ENTRY(agent_release_t) link;
    agent_lease_key_t key;
    char account_id[AGENT_UUID_SIZE];
    bool counted;
    /* As the lease's next_max_shared. */
    int max_shared;
    const char *reason;
    /* Not given back: it ends in error, with this code and the reason. */
    const char *error;
    /* How often it failed alone. */
    int failures;
    apr_time_t retry_at;
    bool sent;
} agent_release_t;

APR_RING_HEAD(agent_release_ring_t, agent_release_t);
typedef struct agent_release_ring_t agent_release_ring_t;

typedef struct agent_release_queue_t {
    agent_release_ring_t waiting;
    agent_release_ring_t unused;
    /* Runs of the next statement, and of the one in flight. */
    agent_limit_t limit;
    int in_flight;
} agent_release_queue_t;

extern const agent_operation_t agent_release_operation;

void agent_release_init(agent_supervisor_t *sv);
void agent_release_add(agent_supervisor_t *sv, const agent_lease_t *lease,
                       bool counted, const char *reason);

/* Ends the run in error whatever else was asked for it, with a statement that
 * does as little as possible. error and message: constants. */
void agent_release_give_up(agent_supervisor_t *sv, const agent_lease_t *lease,
                           const char *error, const char *message);

bool agent_release_is_empty(const agent_supervisor_t *sv);

/* Tells who waits for runs that were released (by whichever statement) and are
 * final now. */
void agent_release_tell(agent_supervisor_t *sv,
                        const agent_db_result_t *released);

/* Forgets all: the worker's lease is lost, others have released the runs. */
void agent_release_clear(agent_supervisor_t *sv);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This supervisor as the database knows it: a worker with a lease on all its
 * runs. Without a renewal in time it stops its runners before others may take
 * the runs over.
 */
#ifndef AGENT_SUPERVISOR_WORKER_H
#define AGENT_SUPERVISOR_WORKER_H

#include <stdbool.h>

#include <apr_tables.h>

#include "database.h"
#include "../limit.h"
#include "../process/process.h"

typedef enum agent_worker_state_t {
    /* Not registered; dead predecessors are not looked for yet. */
    AGENT_WORKER_NEW,
    AGENT_WORKER_REGISTERING,
    AGENT_WORKER_LIVE,
    /* We are in `dead`. */
    AGENT_WORKER_LEAVING,
    /* Buried by ourselves: nothing is left to do. */
    AGENT_WORKER_LEFT
} agent_worker_state_t;

/* More are found at the next sweep. */
#define AGENT_DEAD_MAX 64

/* A worker to bury: the number in the database, as text. */
typedef struct agent_dead_t {
    char id[24];
    /* Its lease has ended, on whatever host. */
    bool is_swept;
    int failures;
} agent_dead_t;

typedef struct agent_worker_t {
    agent_worker_state_t state;
    /* The number in the database, as text. */
    char id[24];
    char boot_id[AGENT_PROCESS_BOOT_SIZE];
    /* Workers to bury, one after the other, whatever our own state; at most
     * AGENT_DEAD_MAX of agent_dead_t. */
    apr_array_header_t *dead;
    /* Runs of the next burial; when it may be sent; it sets a run aside. */
    agent_limit_t bury_limit;
    apr_time_t bury_at;
    bool is_setting_aside;
    /* When the last renewal that succeeded was sent. */
    apr_time_t renewed_at;
    apr_time_t sent_at;
    apr_time_t renew_at;
    apr_time_t retry_at;
    apr_time_t sweep_at;
    apr_time_t partitions_at;
    /* Runners are stopped because the lease was not renewed. */
    bool is_stopped;
    /*
     * A claim's answer was lost: runs may be ours that we do not know of. Until
     * then the runs that we know may end; then all are given back.
     */
    apr_time_t doubt_until;
    bool is_in_doubt;
} agent_worker_t;

extern const agent_operation_t agent_list_operation;
extern const agent_operation_t agent_bury_operation;
extern const agent_operation_t agent_register_operation;
extern const agent_operation_t agent_renew_operation;
extern const agent_operation_t agent_sweep_operation;
extern const agent_operation_t agent_partitions_operation;

void agent_worker_init(agent_supervisor_t *sv);

/* How long what has ended is kept, as an interval in pool: for ever when no
 * retention is configured. */
const char *agent_worker_retention(const agent_supervisor_t *sv,
                                   apr_pool_t *pool);

/* Registered and not known to be fenced. */
bool agent_worker_is_live(const agent_supervisor_t *sv);

/* After the database was away: other workers may have been without it too, and
 * renew their leases before this one looks for those that have ended. */
void agent_worker_delay_sweep(agent_supervisor_t *sv);

/* A new connection is there: renew before anything else. */
void agent_worker_reconnected(agent_supervisor_t *sv);

/* Stops or kills the runners when the lease is in danger; each second. */
void agent_worker_tick(agent_supervisor_t *sv);

/* When agent_worker_tick() must be called at the latest. */
apr_time_t agent_worker_next_tick(const agent_supervisor_t *sv);

/* The answer to a claim was lost. */
void agent_worker_doubt(agent_supervisor_t *sv);

/* For worker.c: a worker to bury, unless it is known already. */
void agent_worker_add_dead(agent_supervisor_t *sv, const char *worker_id,
                           bool is_swept);

/* Buries ourselves, not counted: all runs we hold go back to the queue. */
void agent_worker_leave(agent_supervisor_t *sv);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This supervisor as a worker of the database, with a lease on all its runs.
 * Without a renewal in time it stops its runners before other workers may claim
 * the runs.
 */
#ifndef AGENT_SUPERVISOR_WORKER_H
#define AGENT_SUPERVISOR_WORKER_H

#include <stdbool.h>

#include <apr_tables.h>

#include "../limit.h"
#include "../process/process.h"
#include "../runs.h"
#include "../schedule.h"
#include "notify.h"

typedef enum agent_worker_state_t {
    /* Not registered; predecessors were not listed yet. */
    AGENT_WORKER_NEW,
    AGENT_WORKER_REGISTERING,
    AGENT_WORKER_LIVE,
    /* This worker is in `dead`. */
    AGENT_WORKER_LEAVING,
    /* This worker is marked dead: nothing is left to do. */
    AGENT_WORKER_LEFT
} agent_worker_state_t;

/* The next sweep finds further ones. */
#define AGENT_DEAD_MAX 64

/* A worker to be marked dead: its id in the database, as text. */
typedef struct agent_dead_t {
    char id[24];
    /* Its lease has expired; its host may be another one. */
    bool is_swept;
    int failures;
} agent_dead_t;

typedef struct agent_worker_t {
    agent_context_t *context;
    agent_runner_table_t *runners;
    agent_runs_t *runs;
    agent_notify_t *notify;
    agent_schedule_t *schedule;
    /* The connection of mark_worker_dead. */
    agent_database_t *bulk;
    agent_worker_state_t state;
    /* Its id in the database, as text. */
    char id[24];
    char boot_id[AGENT_PROCESS_BOOT_SIZE];
    /* Workers to be marked dead, one after the other, in any state of this one;
     * at most AGENT_DEAD_MAX of agent_dead_t. */
    apr_array_header_t *dead;
    /* Runs that the next statement releases; when it may be sent; whether it
     * ends a run that cannot be released. */
    agent_limit_t dead_limit;
    apr_time_t dead_at;
    bool is_failing_run;
    /* When the last successful renewal was sent. */
    apr_time_t renewed_at;
    apr_time_t sent_at;
    apr_time_t renew_at;
    apr_time_t retry_at;
    apr_time_t sweep_at;
    apr_time_t partitions_at;
    /*
     * The result of a claim was lost: runs may be leased to this worker that it
     * does not know. The runs it knows may end until doubt_until; then all are
     * requeued.
     */
    apr_time_t doubt_until;
    bool is_in_doubt;
} agent_worker_t;

extern const agent_operation_t agent_list_operation;
extern const agent_operation_t agent_mark_dead_operation;
extern const agent_operation_t agent_register_operation;
extern const agent_operation_t agent_renew_operation;
extern const agent_operation_t agent_sweep_operation;
extern const agent_operation_t agent_partitions_operation;

/* The pointers must be set. */
void agent_worker_init(agent_worker_t *worker);

/* The retention of events as an interval, in pool; very long when none is
 * configured. */
const char *agent_worker_retention(const agent_context_t *context,
                                   apr_pool_t *pool);

/* Registered and not known to be fenced. */
static inline bool agent_worker_is_live(const agent_worker_t *worker)
{
    return worker->state == AGENT_WORKER_LIVE;
}

/* Called when the first connection, or the second one, is up again: a renewal
 * is due at once. */
void agent_worker_on_connected(void *part, bool is_first, const char *unsafe);
void agent_worker_on_bulk_connected(void *part, bool is_first,
                                    const char *unsafe);

/* Stops or kills the runners when the lease is about to expire; each second. */
void agent_worker_tick(agent_worker_t *worker);

/* When agent_worker_tick() must be called at the latest. */
apr_time_t agent_worker_next_tick(const agent_worker_t *worker);

/* The result of a claim was lost: no more claims; registers again when the runs
 * that it knows have ended. */
void agent_worker_doubt(agent_worker_t *worker);

/* Adds a worker to be marked dead, unless it is in the list. */
void agent_worker_add_dead(agent_worker_t *worker, const char *worker_id,
                           bool is_swept);

/* Deregisters this worker; its runs are requeued and the attempt is not
 * counted. */
void agent_worker_leave(agent_worker_t *worker);

#endif

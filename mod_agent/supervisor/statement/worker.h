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

#include "../base/adaptive_limit.h"
#include "../base/schedule.h"
#include "../process/process.h"
#include "../runner/run/runs.h"
#include "fail_run.h"
#include "notify.h"

/*
 * Between two sweeps of workers whose lease has expired, up to 20 % sooner or
 * later. The runs of a host that dies begin again on another one within 30 s:
 * AGENT_SUPERVISOR_LEASE_SEC, the seconds after it in which a late renewal
 * still succeeds, a sweep, and a claim of the other host
 * (AGENT_CLAIM_INTERVAL).
 */
#define AGENT_SWEEP_WORKERS_INTERVAL apr_time_from_sec(2)
#define AGENT_SWEEP_WORKERS_LATE_SEC 5

typedef enum agent_worker_state_t {
    /* Not registered; predecessors were not listed yet. */
    AGENT_WORKER_NEW,
    AGENT_WORKER_REGISTERING,
    AGENT_WORKER_LIVE,
    /* This worker is in `dead`. */
    AGENT_WORKER_DEREGISTERING,
    /* This worker is marked dead: nothing is left to do. */
    AGENT_WORKER_DEREGISTERED
} agent_worker_state_t;

/* Dead workers in the list; the next sweep finds further ones. */
#define AGENT_DEAD_MAX 64

/* A worker to be marked dead: its id in the database, as text. */
typedef struct agent_dead_t {
    char id[24];
    /* Its lease has expired; its host may be another one. */
    bool is_swept;
    /* Whether the attempts of its runs count: not when it deregisters. */
    bool is_counted;
    int failures;
} agent_dead_t;

typedef struct agent_worker_t {
    agent_context_t *context;
    agent_runner_table_t *runners;
    agent_runs_t *runs;
    agent_notify_t *notify;
    agent_schedule_t *schedule;
    agent_database_t *control;
    /* It sends mark_worker_dead. */
    agent_database_t *bulk;
    agent_database_t *output;
    agent_worker_state_t state;
    /* Its id in the database, as text. */
    char id[24];
    char boot_id[AGENT_PROCESS_BOOT_SIZE];
    /* Workers to be marked dead, one after the other, in any state of this one;
     * at most AGENT_DEAD_MAX of agent_dead_t. */
    apr_array_header_t *dead;
    /* Runs that one mark_worker_dead releases. */
    agent_adaptive_limit_t dead_limit;
    /* When the next statement about a dead one is due; its failures. */
    apr_time_t dead_at;
    agent_retry_t dead_retry;
    /* Not NULL: that statement is fail_run, for a run that cannot be released,
     * with this error. */
    const agent_fail_run_error_t *run_error;
    /* When the last registration or renewal was sent, and when the last one
     * that succeeded. */
    apr_time_t sent_at;
    apr_time_t renewed_at;
    /* When these are due: renew_worker; list_node_workers and register_worker;
     * sweep_workers. */
    apr_time_t renew_at;
    apr_time_t retry_at;
    apr_time_t sweep_at;
} agent_worker_t;

extern const agent_operation_t agent_list_operation;
extern const agent_operation_t agent_mark_dead_operation;
extern const agent_operation_t agent_register_operation;
extern const agent_operation_t agent_renew_operation;
extern const agent_operation_t agent_sweep_workers_operation;

/* The pointers must be set. */
void agent_worker_init(agent_worker_t *worker);

/* Registered and not known to be fenced. */
static inline bool agent_worker_is_live(const agent_worker_t *worker)
{
    return worker->state == AGENT_WORKER_LIVE;
}

/* `at` while the worker is live, else never. */
static inline apr_time_t agent_worker_due(const agent_worker_t *worker,
                                          apr_time_t at)
{
    return agent_worker_is_live(worker) ? at : AGENT_CLOCK_NEVER;
}

/* Called when any connection is up again (retry.h). */
void agent_worker_count_crash(agent_worker_t *worker);

/* Called when the control connection, or the bulk connection, is up. On the
 * control connection a renewal, a check and a claim are due at once. After a
 * reconnect of either the sweep is delayed. */
void agent_worker_on_connected(agent_worker_t *worker, bool is_first,
                               const agent_session_info_t *info);
void agent_worker_on_bulk_connected(agent_worker_t *worker, bool is_first);

/* Stops or kills the runners when the lease is about to expire; each second. */
void agent_worker_tick(agent_worker_t *worker);

/* When agent_worker_tick() must be called at the latest. */
apr_time_t agent_worker_next_tick(const agent_worker_t *worker);

/* Adds a worker to be marked dead, unless it is listed or the list is full. */
void agent_worker_add_dead(agent_worker_t *worker, const char *worker_id,
                           bool is_swept);

/* Deregisters this worker, if it is registered, when the supervisor ends: its
 * runs are requeued, and the attempt does not count. */
void agent_worker_deregister(agent_worker_t *worker);

#endif

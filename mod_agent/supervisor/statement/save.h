/* SPDX-License-Identifier: Apache-2.0 */
/* save_batch: stores the output of runs, on the control connection and, of
 * dedicated batches, on the output connection, or on the bulk connection while
 * that one cannot be made. */
#ifndef AGENT_SUPERVISOR_SAVE_H
#define AGENT_SUPERVISOR_SAVE_H

#include "../runner/run/runs.h"
#include "notify.h"
#include "worker.h"

/* An attempt whose connection was lost without the notice of a crash, and none
 * after it was answered. */
typedef struct agent_save_loss_t {
    apr_time_t sent_at; /* core/clock.h; 0: there is none */
    /* The number of the shared batch. */
    apr_uint64_t number;
    /* Of the dedicated one: the lease of its run, and its lines. */
    agent_lease_key_t key;
    int lines;
} agent_save_loss_t;

typedef struct agent_save_t {
    const agent_worker_t *worker;
    const agent_runner_table_t *runners;
    agent_runs_t *runs;
    agent_notify_t *notify;
    agent_schedule_t *schedule;
    /* The connections of shared and of dedicated batches, and of these while
     * the output connection cannot be made. */
    const agent_database_t *control;
    const agent_database_t *output;
    const agent_database_t *bulk;
    /* The lines that were saved lately, and when one that waits since the
     * database lacked resources was made due for that (core/clock.h). */
    agent_patience_saved_t saved;
    apr_time_t hastened_at;
    /* The connection on which the last dedicated batch was sent. */
    const agent_database_t *sent_on;
    /* The last attempts of each kind that may have crashed the database. */
    agent_save_loss_t lost_shared;
    agent_save_loss_t lost_dedicated;
    /* The run and deployment of the last dedicated batch whose connection was
     * lost, and when, until that is made again; 0: there is none. When the
     * batch was sent, the number of the control connection then, and why it
     * failed. Whether that happened without the crash of another process, and
     * whether the batch had failed before. */
    char disconnected[36];
    char disconnected_deployment[AGENT_UUID_SIZE];
    apr_time_t disconnected_at;
    apr_time_t disconnected_sent_at;
    apr_uint64_t disconnected_control;
    const char *disconnected_why;
    bool is_own_loss;
    bool had_failed;
} agent_save_t;

/* The lease of the run of a dedicated batch; NULL when it has ended. */
static inline agent_lease_t *agent_save_find_lease(const agent_runs_t *runs,
                                                   const agent_batch_t *batch)
{
    return agent_lease_find(&runs->leases,
                            &agent_batch_item(batch, 0)->run->key);
}

/* Whether the statement with the next dedicated batch of a run may take half of
 * the lease. lease: NULL if it has ended. */
static inline bool agent_save_needs_long_limit(const agent_lease_t *lease)
{
    return lease == NULL || lease->batch_size.needs_long_limit;
}

/*
 * The time after which the database cancels the statement with a batch. With
 * several lines of a run it may take AGENT_BATCH_SIZE_TIMEOUT, whatever was
 * expected of them; so may a line alone at first. If it needs longer, it gets
 * half of the lease.
 */
static inline apr_interval_time_t agent_save_limit(
    const agent_context_t *context, const agent_batch_t *batch)
{
    apr_interval_time_t longest = agent_context_longest_statement(context);

    if (!batch->is_dedicated) {
        return context->timing.statement;
    }
    return batch->has_long_limit || longest < AGENT_BATCH_SIZE_TIMEOUT
        ? longest
        : AGENT_BATCH_SIZE_TIMEOUT;
}

/*
 * The time for which the statement with a dedicated batch may wait for a lock,
 * after which it is tried again: the lock does not come from the output. Half
 * of its limit; after a wait AGENT_SAVE_BRIEF_LOCK until a statement of the run
 * is saved, so that of many runs those that are not locked wait for no other
 * one.
 */
#define AGENT_SAVE_BRIEF_LOCK apr_time_from_msec(50)
static inline apr_interval_time_t agent_save_lock_limit(
    const agent_runs_t *runs, const agent_batch_t *batch)
{
    const agent_lease_t *lease = agent_save_find_lease(runs, batch);

    return lease != NULL && lease->batch_size.lock_waits > 0
        ? AGENT_SAVE_BRIEF_LOCK
        : agent_save_limit(runs->context, batch) / 2;
}

/* For shared batches, for dedicated ones (../lease/batch.h), and for these on
 * the bulk connection. part: the same agent_save_t. */
extern const agent_operation_t agent_batch_operation;
extern const agent_operation_t agent_dedicated_batch_operation;
extern const agent_operation_t agent_bulk_batch_operation;

#endif

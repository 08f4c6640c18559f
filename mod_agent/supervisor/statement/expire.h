/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes what is no longer needed, in short transactions: expired threads,
 * values that no checkpoint uses, events of deleted runs, abandoned copies of
 * threads, closed accounts that are to be deleted, old calls, expired items of
 * the store, partitions of old events. Revokes API keys that have expired, and
 * deletes old ones and old rows of the audit log. Counts and measures what
 * accounts have, and ends runs that would store more than their accounts may.
 * Creates the partitions of the next days.
 */
#ifndef AGENT_SUPERVISOR_EXPIRE_H
#define AGENT_SUPERVISOR_EXPIRE_H

#include "notify.h"
#include "worker.h"

typedef struct agent_expire_t {
    const agent_worker_t *worker;
    agent_notify_t *notify;
    /* expire_threads: when it is due, and when it was sent last. */
    apr_time_t threads_at;
    apr_time_t sent_at;
    /* When maintain_partitions is due. */
    apr_time_t partitions_at;
    /* When end_full_runs is due. */
    apr_time_t full_at;
} agent_expire_t;

/* A statement that deletes a part of what it finds: it is repeated soon while
 * it finds more. */
typedef struct agent_sweep_t {
    const agent_worker_t *worker;
    apr_time_t due_at;
} agent_sweep_t;

/* part: an agent_expire_t. */
extern const agent_operation_t agent_expire_operation;
extern const agent_operation_t agent_partitions_operation;
extern const agent_operation_t agent_full_operation;
/* part: an agent_sweep_t for each. */
extern const agent_operation_t agent_state_operation;
extern const agent_operation_t agent_event_operation;
extern const agent_operation_t agent_copy_operation;
extern const agent_operation_t agent_call_operation;
extern const agent_operation_t agent_store_operation;
extern const agent_operation_t agent_account_operation;
extern const agent_operation_t agent_api_key_operation;
extern const agent_operation_t agent_audit_operation;
extern const agent_operation_t agent_count_operation;
extern const agent_operation_t agent_measure_operation;

/* The retention of events as an interval of PostgreSQL, in pool; 100 years when
 * none is configured. */
const char *agent_expire_retention(const agent_context_t *context,
                                   apr_pool_t *pool);

#endif

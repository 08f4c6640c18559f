/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies waiting requests of changed runs and threads: one notification for
 * many of them, in a separate transaction after the changes are committed.
 */
#ifndef AGENT_SUPERVISOR_NOTIFY_H
#define AGENT_SUPERVISOR_NOTIFY_H

#include <stdbool.h>

#include <apr_hash.h>

#include "database.h"

/* A run or a thread. */
typedef struct agent_notify_id_t {
    const char *id;
    /* It may be a run that has ended. */
    bool may_have_ended;
} agent_notify_id_t;

typedef struct agent_notify_t {
    const agent_context_t *context;
    /* Holds the ids; cleared after each statement. */
    apr_pool_t *pool;
    /* Id -> agent_notify_id_t. */
    apr_hash_t *ids;
    /* Those of the statement in flight. */
    apr_pool_t *sent_pool;
    apr_hash_t *sent_ids;
    /* When the next statement is due, and when the last one was sent. */
    apr_time_t due_at;
    apr_time_t sent_at;
} agent_notify_t;

extern const agent_operation_t agent_notify_operation;

void agent_notify_init(agent_notify_t *notify, const agent_context_t *context);

/* Queues a run and its thread (may be NULL): at once if the run ended, else 2
 * ms after the last statement. */
void agent_notify_add(agent_notify_t *notify, const char *run_id,
                      const char *thread_id, bool ended);

/* Queues ids of threads and runs, separated by spaces, that another process
 * changed, and which may have ended; invalid ids are skipped. */
void agent_notify_relay(agent_notify_t *notify, const char *ids);

/* Whether no id waits to be sent. */
bool agent_notify_is_empty(const agent_notify_t *notify);

#endif

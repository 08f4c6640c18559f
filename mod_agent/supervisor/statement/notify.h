/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling the waiting requests which runs and threads have news: one notifying
 * transaction of its own for many of them, after what it tells is committed.
 */
#ifndef AGENT_SUPERVISOR_NOTIFY_H
#define AGENT_SUPERVISOR_NOTIFY_H

#include <stdbool.h>

#include <apr_hash.h>

#include "database.h"

typedef struct agent_notify_t {
    /* Holds the ids; made anew after each statement. */
    apr_pool_t *pool;
    apr_hash_t *ids;
    /* Those in flight, until they are known to be told. */
    apr_pool_t *sent_pool;
    apr_hash_t *sent_ids;
    apr_time_t due_at;
    apr_time_t sent_at;
} agent_notify_t;

extern const agent_operation_t agent_notify_operation;

void agent_notify_init(agent_supervisor_t *sv);

/* ended: somebody waits for just that, so it is told at once. thread_id may be
 * NULL. */
void agent_notify_add(agent_supervisor_t *sv, const char *run_id,
                      const char *thread_id, bool ended);

/* Ids of threads and runs, separated by spaces, that somebody else changed;
 * what is no id is left out. */
void agent_notify_relay(agent_supervisor_t *sv, const char *ids);

bool agent_notify_is_empty(const agent_supervisor_t *sv);

#endif

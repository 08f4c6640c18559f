/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to the database: it reconnects for ever and has one statement in
 * flight. It knows none of its operations: instance.c adds them.
 */
#ifndef AGENT_SUPERVISOR_DATABASE_H
#define AGENT_SUPERVISOR_DATABASE_H

#include <apr_tables.h>

#include "../../core/clock.h"
#include "../../db/query.h"
#include "../base/context.h"
#include "../base/poll.h"
#include "operation.h"
#include "session.h"

typedef enum agent_database_state_t {
    AGENT_DATABASE_DOWN,
    AGENT_DATABASE_CONNECTING,
    AGENT_DATABASE_IDLE,
    AGENT_DATABASE_BUSY
} agent_database_state_t;

/* Settings of a connection. */
typedef struct agent_database_settings_t {
    const char *name; /* for the log */
    /* Time until the database cancels a statement, and until the connection is
     * given up. The latter is longer: a statement that was cancelled is known
     * not to have been executed. */
    apr_interval_time_t statement_limit;
    apr_interval_time_t timeout;
    /* Time that a statement may wait for a lock, after which it is tried again;
     * 0: as long as it may take. */
    apr_interval_time_t lock_limit;
    /* The others of this process, ended by NULL: while one of them is
     * connected, this one is first tried at its address. */
    const agent_database_t *const *others;
    /* Called each time when it is connected, to a database of the region of the
     * configuration; NULL: nothing is. */
    void (*on_connected)(void *part, bool is_first,
                         const agent_session_info_t *info);
    void *part;
} agent_database_settings_t;

struct agent_database_t {
    agent_context_t *context;
    agent_database_settings_t settings;
    /* Of agent_operation_entry_t, in the order in which they were added. */
    apr_array_header_t *entries;
    agent_database_state_t state;
    agent_db_t *db;
    /* Lives as long as the connection. */
    apr_pool_t *pool;
    /* Lives as long as a statement. */
    apr_pool_t *scratch;
    /* EPOLLIN and EPOLLOUT: its descriptor is waited for. */
    uint32_t events;
    agent_poll_t *poll;
    agent_poll_watch_t watch;
    /* The one in flight, or the last one; NULL while the session of a
     * new connection begins. */
    const agent_operation_t *operation;
    void *part;
    /* Number of the last statement; when it was sent (core/clock.h, as all
     * times here), and the time that it may take: the connection's, unless
     * `send` sets another one. */
    apr_uint64_t last_statement;
    apr_time_t sent_at;
    apr_interval_time_t limit;
    /* When the connection or the statement is given up. */
    apr_time_t deadline;
    /* While connecting: when all hosts are given up. */
    apr_time_t connect_until;
    /* While down: when to connect. */
    apr_time_t connect_at;
    int failed_connects;
    /* Number of the connection; 0: there was none yet. */
    apr_uint64_t connection;
    /* When it got the last result of an operation. */
    apr_time_t answered_at;
    /* When it was lost; 0: it is connected. */
    apr_time_t lost_at;
    /* When it was lost because another process of the server crashed; 0: never.
     */
    apr_time_t crash_reported_at;
    /* Connections lost since the last statement that one outlived. */
    int losses;
    /* The next connection is made again. */
    bool was_connected;
};

void agent_database_init(agent_database_t *database, agent_context_t *context,
                         agent_poll_t *poll,
                         const agent_database_settings_t *settings);

/* Adds an operation. Of those that were never sent, the one that was added
 * first is sent first. part: the struct of its statement, passed to its
 * functions. */
void agent_database_add(agent_database_t *database,
                        const agent_operation_t *operation, void *part);

/* Connects, sends, and gives up after time-outs; waits for its descriptor.
 * Returns when to be called again at the latest. */
apr_time_t agent_database_step(agent_database_t *database);

/* Returns when the connection was lost, or when the supervisor began to
 * connect; AGENT_CLOCK_NEVER while it is connected. */
static inline apr_time_t agent_database_lost_at(
    const agent_database_t *database)
{
    return database->lost_at > 0 ? database->lost_at : AGENT_CLOCK_NEVER;
}

/* Closes the connection, if there is one; agent_database_step() connects again.
 * The operation in flight fails with failure. */
void agent_database_close(agent_database_t *database, agent_failure_t failure);

/* When to send a statement again after a failure: now if the connection was
 * lost, else after 50 ms (RETRY or LOCK) or 1 s. */
apr_time_t agent_database_retry_at(const agent_context_t *context,
                                   agent_failure_t failure);

/* Now plus the interval, up to 20 % sooner or later at random, so that hosts do
 * not act in step. */
apr_time_t agent_database_after(const agent_context_t *context,
                                apr_interval_time_t interval);

#endif

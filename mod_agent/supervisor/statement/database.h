/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection of the supervisor: made again for ever when it is lost, one
 * statement in flight, and operations that are sent in turn: a renewal first,
 * then what was sent longest ago. There are two: sv->database for what is short
 * and bounded, renewals among it; sv->bulk for what may be large or slow.
 */
#ifndef AGENT_SUPERVISOR_DATABASE_H
#define AGENT_SUPERVISOR_DATABASE_H

#include <poll.h>

#include "../../db/query.h"
#include "../types.h"

/* How a statement failed. */
typedef enum agent_failure_t {
    /* The connection was lost: it may or may not have been executed. */
    AGENT_FAILURE_LOST,
    /* Not executed: it took longer than a statement may. */
    AGENT_FAILURE_TIMEOUT,
    /* The next try may succeed. The database did not execute it (locks,
     * restarts), or we have closed the connection under it. */
    AGENT_FAILURE_RETRY,
    /* The database refuses what it was given. */
    AGENT_FAILURE_DATA,
    /* The schema or the rights to it are missing; a person must act. */
    AGENT_FAILURE_SETUP,
    /* Anything else: a defect. */
    AGENT_FAILURE_OTHER
} agent_failure_t;

/* Whether the same statement may succeed later, as it is: RETRY or SETUP. */
bool agent_failure_is_transient(agent_failure_t failure);

typedef struct agent_database_t agent_database_t;

typedef struct agent_operation_t {
    /* For the log. */
    const char *name;
    /* When it wants to be sent; AGENT_NEVER: not now. */
    apr_time_t (*due)(agent_supervisor_t *sv);
    /* Sends its statement; temporary memory is database->scratch. */
    apr_status_t (*send)(agent_supervisor_t *sv, agent_database_t *database,
                         agent_error_t **err);
    void (*receive)(agent_supervisor_t *sv, const agent_db_result_t *result);
    void (*fail)(agent_supervisor_t *sv, agent_failure_t failure);
} agent_operation_t;

/* Room for a table of operations. */
#define AGENT_OPERATION_MAX 24

typedef enum agent_database_state_t {
    AGENT_DATABASE_DOWN,
    AGENT_DATABASE_CONNECTING,
    AGENT_DATABASE_IDLE,
    AGENT_DATABASE_BUSY
} agent_database_state_t;

struct agent_database_t {
    /* Sent in turn: a renewal first, then what was sent longest ago. Ended by
     * NULL. */
    const agent_operation_t *const *operations;
    agent_database_state_t state;
    agent_db_t *db;
    /* Lives as long as the connection. */
    apr_pool_t *pool;
    /* Lives as long as a statement. */
    apr_pool_t *scratch;
    /* What the socket is polled for. */
    short events;
    /* In flight, NULL for the limits of a new connection; else the one before.
     */
    const agent_operation_t *operation;
    /* When each operation was sent last, counted in statements. */
    apr_uint64_t turns[AGENT_OPERATION_MAX];
    apr_uint64_t last_turn;
    /* When patience with the connection or the statement ends. */
    apr_time_t deadline;
    /* While connecting, when all hosts together have had their time. */
    apr_time_t connect_until;
    apr_time_t connect_at;
    int failed_connects;
    bool was_connected;
};

void agent_database_init(agent_supervisor_t *sv, agent_database_t *database,
                         const agent_operation_t *const *operations);

/*
 * Connects when it is time to, sends what is due, gives up what takes too
 * long. Returns when to be called again at the latest.
 */
apr_time_t agent_database_step(agent_supervisor_t *sv,
                               agent_database_t *database);

/* The socket is ready. */
void agent_database_ready(agent_supervisor_t *sv, agent_database_t *database);

/* The descriptor to poll; -1: none. */
int agent_database_fd(const agent_database_t *database);

/* Closes the connection, if there is one; it is made again when it is time to.
 * The operation in flight has failed so. */
void agent_database_close(agent_supervisor_t *sv, agent_database_t *database,
                          agent_failure_t failure);

/* A good time to try again after a failure. */
apr_time_t agent_database_retry_at(agent_supervisor_t *sv,
                                   agent_failure_t failure);

/* A time from now, 20 % sooner or later, so that nodes do not march in step. */
apr_time_t agent_database_after(agent_supervisor_t *sv,
                                apr_interval_time_t interval);

/* The operations of each connection (operations.c). A renewal goes before all
 * others of its own. */
extern const agent_operation_t *const agent_operations[];
extern const agent_operation_t *const agent_bulk_operations[];

#endif

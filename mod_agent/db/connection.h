/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a connection and its repair, private to db/; see query.h. */
#ifndef AGENT_DB_CONNECTION_H
#define AGENT_DB_CONNECTION_H

#include <apr_tables.h>
#include <libpq-fe.h>

#include "query.h"

struct agent_db_t {
    PGconn *conn;
    agent_db_settings_t settings;
    /* The backend that prepared is valid for; 0: none yet. */
    int backend_pid;
    /* Of const agent_statement_t *; each is prepared once. */
    apr_array_header_t *prepared;
    /* The first statement of agent_db_send_both() was sent, and its result was
     * not received yet. */
    bool has_first;
    /* The statement whose preparation was sent and has no result yet; NULL:
     * none. */
    const agent_statement_t *preparing;
    /* The last statement was prepared by an earlier agent_db_send(). */
    bool was_prepared;
    /* A statement was abandoned: the connection must be reset. */
    bool broken;
    /* Connecting with PQreset, not PQconnect. */
    bool resetting;
    /* The last reset failed. */
    bool unreachable;
    /* PQflush has data left to send. */
    bool flushing;
    /* The result so far, until the last one was received. */
    PGresult *partial;
    char sqlstate[6];
    /* Of the last error: ERROR, FATAL or PANIC. */
    char severity[6];
    /* The server closes the connection because another one of its processes
     * crashed. */
    bool is_crash_reported;
    /* The last error: the prepared statement would return other types than when
     * it was prepared. Nothing was executed. */
    bool is_plan_stale;
    /* Bytes of the largest statement or result of agent_db_query(); libpq's
     * buffers have grown to that size. */
    apr_size_t largest_text;
};

/*
 * Starts a connection without blocking; NULL: out of memory. Parameters of
 * conninfo override the defaults: keepalives and time limits, which detect a
 * half-open connection. beside: a connection of the same conninfo, to whose
 * address and port this one leads, so that no name is resolved; NULL: none.
 */
PGconn *agent_db_start_connection(const char *conninfo,
                                  const char *application_name,
                                  const PGconn *beside);

/* Returns libpq's message in one line, with `; ` between its lines, in pool. */
const char *agent_db_message(const char *message, apr_pool_t *pool);

/* Marks the connection as lost. Returns the error UNAVAILABLE with libpq's
 * message. */
apr_status_t agent_db_set_lost(agent_db_t *db, agent_error_t **err,
                               apr_pool_t *pool);

/* Waits until the socket can be read (or written, if want says so); false after
 * the deadline, a time of apr_time_now(). */
bool agent_db_wait(const agent_db_t *db, agent_db_progress_t want,
                   apr_time_t deadline);

/* Connects again, within connect_timeout. */
apr_status_t agent_db_reset(agent_db_t *db, agent_error_t **err,
                            apr_pool_t *pool);

/*
 * Whether an idle connection must be reset before use. If it has data to read,
 * that is a server-initiated close or a rare notice; a new connection is
 * simpler than telling them apart.
 */
bool agent_db_needs_reset(const agent_db_t *db);

/* Records the result of a PQsend function, before agent_db_receive(). Errors:
 * UNAVAILABLE when libpq has not taken the statement. */
apr_status_t agent_db_mark_sent(agent_db_t *db, int sent, agent_error_t **err,
                                apr_pool_t *pool);

/* Whether the backend has prepared the statement. */
bool agent_db_is_prepared(const agent_db_t *db,
                          const agent_statement_t *statement);

/* Returns the bytes that libpq has allocated for a result. */
apr_size_t agent_db_result_bytes(const agent_db_result_t *result);

#endif

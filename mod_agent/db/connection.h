/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of db/ know of a connection; everybody else uses query.h. */
#ifndef AGENT_DB_CONNECTION_H
#define AGENT_DB_CONNECTION_H

#include <apr_tables.h>
#include <libpq-fe.h>

#include "query.h"

struct agent_db_t {
    PGconn *conn;
    agent_db_limits_t limits;
    /* The backend that prepared is valid for; 0: none yet. */
    int backend_pid;
    /* Of const agent_statement_t *; agent_db_query() prepares each once. */
    apr_array_header_t *prepared;
    /* A statement was given up half-way: only a new connection helps. */
    bool broken;
    /* Connecting by PQreset rather than PQconnect. */
    bool resetting;
    /* The last attempt to connect again failed. */
    bool unreachable;
    /* PQflush has not yet sent all. */
    bool flushing;
    /* The result being received, kept until the last one came. */
    PGresult *partial;
    char sqlstate[6];
    /* Bytes of the largest statement that agent_db_query() has sent, or of the
     * largest result: what the connection's buffers were enlarged to. */
    apr_size_t carried;
};

/* libpq's message without its last newline, in pool. */
const char *agent_db_message(const char *message, apr_pool_t *pool);

/* The connection is lost: UNAVAILABLE with libpq's message. */
apr_status_t agent_db_lost(agent_db_t *db, agent_error_t **err,
                           apr_pool_t *pool);

/* Waits for the socket until deadline; false when that passed. */
bool agent_db_wait(const agent_db_t *db, agent_db_progress_t want,
                   apr_time_t deadline);

/*
 * libpq tries one host after the other, but not within a time when it does not
 * block: a machine that is off would take all of it. So each host gets its
 * share of whole, ...
 */
apr_interval_time_t agent_db_host_timeout(PGconn *conn,
                                          apr_interval_time_t whole);

/* ... after which the next one is tried; nothing happens to a host that has
 * accepted. Go on as if the socket were ready. */
void agent_db_skip_host(PGconn *conn);

/* Connects again, at most connect_timeout. */
apr_status_t agent_db_reset(agent_db_t *db, agent_error_t **err,
                            apr_pool_t *pool);

/*
 * True for an idle connection that must be reset before use. It has nothing to
 * read; if it has, that is the server's farewell (or news so rare that a new
 * connection costs less than telling them apart).
 */
bool agent_db_needs_reset(const agent_db_t *db);

#endif

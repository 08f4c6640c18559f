/* SPDX-License-Identifier: Apache-2.0 */
/* A LISTEN connection; see listener.h. */
#include "listener.h"

#include <poll.h>

#include <apr_strings.h>
#include <apr_time.h>
#include <libpq-fe.h>

#include "connection.h"

#define CONNECT_TIMEOUT apr_time_from_sec(5)
#define RECONNECT_PAUSE apr_time_from_sec(1)
#define PROBE_INTERVAL  apr_time_from_sec(15)
#define PROBE_TIMEOUT   apr_time_from_sec(5)

struct agent_listener_t {
    const char *conninfo;
    const char *listen_sql;
    int stop_fd;
    agent_listener_events_t events;
    agent_db_t db;
    bool stopped;
};

agent_listener_t *agent_listener_create(const char *conninfo,
                                        const char *channel, int stop_fd,
                                        const agent_listener_events_t *events,
                                        apr_pool_t *pool)
{
    agent_listener_t *listener = apr_pcalloc(pool, sizeof(*listener));

    listener->conninfo = conninfo;
    /* The role's idle_session_timeout is meant for sessions that execute
     * statements. */
    listener->listen_sql = apr_pstrcat(
        pool, "set idle_session_timeout = 0; listen ", channel, NULL);
    listener->stop_fd = stop_fd;
    listener->events = *events;
    return listener;
}

/* Waits for fd (-1 = none), stop_fd or the timeout; true if fd is ready. */
static bool wait_for(agent_listener_t *listener, int fd, short events,
                     apr_interval_time_t timeout)
{
    struct pollfd fds[2] = {{.fd = listener->stop_fd, .events = POLLIN},
                            {.fd = fd, .events = events}};
    int ready;

    if (timeout < 0) {
        return false;
    }
    ready = poll(fds, 2, (int)apr_time_as_msec(timeout) + 1);
    if (ready > 0 && fds[0].revents != 0) {
        listener->stopped = true;
    }
    return ready > 0 && fds[1].revents != 0 && !listener->stopped;
}

/* Waits for a step of connecting, with the time limit of each host. */
static bool wait_for_host(agent_listener_t *listener, short events,
                          apr_time_t deadline)
{
    apr_interval_time_t share = agent_db_host_timeout(&listener->db,
                                                      CONNECT_TIMEOUT);

    if (apr_time_now() + share < deadline
        && !wait_for(listener, PQsocket(listener->db.conn), events, share)
        && !listener->stopped) {
        agent_db_skip_host(&listener->db);
    }
    return !listener->stopped
        && wait_for(listener, PQsocket(listener->db.conn), events,
                    deadline - apr_time_now());
}

static bool connect_database(agent_listener_t *listener)
{
    apr_time_t deadline = apr_time_now() + CONNECT_TIMEOUT;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    listener->db.conn = agent_db_start_connection(listener->conninfo,
                                                  "mod_agent listener", NULL);
    while (PQstatus(listener->db.conn) != CONNECTION_BAD
           && status != PGRES_POLLING_OK) {
        short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;

        if (!wait_for_host(listener, events, deadline)) {
            return false;
        }
        status = PQconnectPoll(listener->db.conn);
        if (status == PGRES_POLLING_FAILED) {
            return false;
        }
    }
    return status == PGRES_POLLING_OK;
}

static void deliver(agent_listener_t *listener)
{
    PGnotify *notify;

    while ((notify = PQnotifies(listener->db.conn)) != NULL) {
        listener->events.notified(listener->events.baton, notify->extra);
        PQfreemem(notify);
    }
    listener->events.drained(listener->events.baton);
}

/* Executes a statement; delivers notifications that arrive with its result. */
static bool execute(agent_listener_t *listener, const char *sql)
{
    apr_time_t deadline = apr_time_now() + PROBE_TIMEOUT;
    ExecStatusType status = PGRES_FATAL_ERROR;
    PGresult *result;

    if (!PQsendQuery(listener->db.conn, sql)) {
        return false;
    }
    while (PQisBusy(listener->db.conn)) {
        if (!wait_for(listener, PQsocket(listener->db.conn), POLLIN,
                      deadline - apr_time_now())
            || !PQconsumeInput(listener->db.conn)) {
            return false;
        }
    }
    while ((result = PQgetResult(listener->db.conn)) != NULL) {
        status = PQresultStatus(result);
        PQclear(result);
    }
    deliver(listener);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* One session, until the connection is lost or the listener stopped. */
static void listen_once(agent_listener_t *listener)
{
    if (!connect_database(listener)
        || !execute(listener, listener->listen_sql)) {
        return;
    }
    listener->events.connected(listener->events.baton);
    while (!listener->stopped) {
        bool ready = wait_for(listener, PQsocket(listener->db.conn), POLLIN,
                              PROBE_INTERVAL);

        if (ready) {
            if (!PQconsumeInput(listener->db.conn)) {
                return;
            }
            deliver(listener);
        }
        else if (!listener->stopped && !execute(listener, "select 1")) {
            return;
        }
    }
}

void agent_listener_run(agent_listener_t *listener)
{
    while (!listener->stopped) {
        listen_once(listener);
        if (!listener->stopped) {
            listener->events.lost(listener->events.baton,
                                  listener->db.conn
                                      ? PQerrorMessage(listener->db.conn)
                                      : "out of memory");
        }
        agent_db_close(&listener->db);
        if (!listener->stopped) {
            wait_for(listener, -1, 0, RECONNECT_PAUSE);
        }
    }
}

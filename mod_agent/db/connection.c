/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, resets and closes a PostgreSQL connection; see connection.h. */
#include "connection.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <apr_strings.h>

#include "notice.h"

#define LINE_BREAKS "\r\n"

bool agent_db_alive(const agent_db_t *db)
{
    return db->conn != NULL && !db->broken
        && PQstatus(db->conn) == CONNECTION_OK;
}

bool agent_db_notice_is_crash(agent_db_t *db)
{
    if (db->conn != NULL) {
        PQconsumeInput(db->conn);
        PQisBusy(db->conn);
    }
    return db->is_crash_reported;
}

bool agent_db_unreachable(const agent_db_t *db)
{
    return db->unreachable;
}

const char *agent_db_sqlstate(const agent_db_t *db)
{
    return db->sqlstate;
}

bool agent_db_is_panic(const agent_db_t *db)
{
    return strcmp(db->severity, "PANIC") == 0;
}

bool agent_db_is_over(const agent_db_t *db)
{
    return agent_db_is_panic(db) || strcmp(db->severity, "FATAL") == 0;
}

bool agent_db_is_error(const agent_db_t *db)
{
    return strcmp(db->severity, "ERROR") == 0;
}

int agent_db_socket(const agent_db_t *db)
{
    return db->conn != NULL ? PQsocket(db->conn) : -1;
}

const char *agent_db_message(const char *message, apr_pool_t *pool)
{
    char *copy = apr_pstrdup(pool, message ? message : "");

    char *last;
    char *line = apr_strtok(copy, LINE_BREAKS, &last);
    const char *joined = line != NULL ? line : "";

    /* Bounded: libpq's messages have a few lines. */
    while (line != NULL
           && (line = apr_strtok(NULL, LINE_BREAKS, &last)) != NULL) {
        line += strspn(line, " \t");
        joined = apr_pstrcat(pool, joined, "; ", line, NULL);
    }
    return joined;
}

apr_status_t agent_db_set_lost(agent_db_t *db, agent_error_t **err,
                               apr_pool_t *pool)
{
    db->sqlstate[0] = db->severity[0] = '\0';
    db->is_plan_stale = false;
    db->broken = true;
    return agent_error_set(err, AGENT_E_UNAVAILABLE, NULL,
                           agent_db_message(PQerrorMessage(db->conn), pool),
                           pool);
}

bool agent_db_wait(const agent_db_t *db, agent_db_progress_t want,
                   apr_time_t deadline)
{
    struct pollfd socket = {.fd = PQsocket(db->conn), .events = POLLIN};

    if (want == AGENT_DB_WANT_WRITE) {
        socket.events = POLLIN | POLLOUT;
    }
    for (;;) {
        apr_interval_time_t left = deadline - apr_time_now();
        int ready;

        if (left < 0 || socket.fd < 0) {
            return false;
        }
        ready = poll(&socket, 1, (int)apr_time_as_msec(left) + 1);
        if (ready >= 0 || errno != EINTR) {
            return ready > 0;
        }
        /* Interrupted by a signal, such as that of a graceful restart in the
         * prefork MPM. */
    }
}

static apr_status_t finish_connection(void *baton)
{
    agent_db_close(baton);
    return APR_SUCCESS;
}

void agent_db_close(agent_db_t *db)
{
    if (db->partial != NULL) {
        PQclear(db->partial);
        db->partial = NULL;
    }
    if (db->conn != NULL) {
        PQfinish(db->conn);
        db->conn = NULL;
    }
}

/* The array has space for all statements of the handlers. */
static agent_db_t *make_db(apr_pool_t *pool)
{
    agent_db_t *db = apr_pcalloc(pool, sizeof(*db));

    db->prepared = apr_array_make(pool, 32, sizeof(const agent_statement_t *));
    return db;
}

agent_db_t *agent_db_wrap(void *native, const agent_db_settings_t *settings,
                          apr_pool_t *pool)
{
    agent_db_t *db = make_db(pool);

    db->conn = native;
    db->settings = *settings;
    return db;
}

PGconn *agent_db_start_connection(const char *conninfo,
                                  const char *application_name,
                                  const PGconn *beside)
{
    const char *address = beside != NULL ? PQhostaddr(beside) : NULL;
    bool has_address = address != NULL && address[0] != '\0';
    /* libpq ignores keywords without a value. TLS still verifies the host
     * name. */
    const char *const keys[] = {"connect_timeout",
                                "keepalives_idle",
                                "keepalives_interval",
                                "keepalives_count",
                                "tcp_user_timeout",
                                "dbname",
                                "application_name",
                                "host",
                                "hostaddr",
                                "port",
                                NULL};
    const char *const values[] = {"5",
                                  "10",
                                  "5",
                                  "3",
                                  "20000",
                                  conninfo,
                                  application_name,
                                  has_address ? PQhost(beside) : NULL,
                                  has_address ? address : NULL,
                                  has_address ? PQport(beside) : NULL,
                                  NULL};

    return PQconnectStartParams(keys, values, 1);
}

/* A crash is reported by a warning: it is not an error of the statement. Other
 * notices are printed, as libpq does. */
static void receive_notice(void *baton, const PGresult *notice)
{
    const char *state = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
    agent_db_t *db = baton;

    if (state != NULL && strcmp(state, "57P02") == 0) {
        db->is_crash_reported = true;
        return;
    }
    fputs(PQresultErrorMessage(notice), stderr);
}

apr_status_t agent_db_connect(agent_db_t **out, const char *conninfo,
                              const char *application_name,
                              const agent_db_t *beside, agent_error_t **err,
                              apr_pool_t *pool)
{
    agent_db_t *db = make_db(pool);

    db->conn = agent_db_start_connection(conninfo, application_name,
                                         beside != NULL ? beside->conn : NULL);
    *out = db;
    apr_pool_cleanup_register(pool, db, finish_connection,
                              apr_pool_cleanup_null);
    if (db->conn == NULL || PQstatus(db->conn) == CONNECTION_BAD) {
        return agent_db_set_lost(db, err, pool);
    }
    PQsetNoticeReceiver(db->conn, receive_notice, db);
    return APR_SUCCESS;
}

agent_db_progress_t agent_db_connect_step(agent_db_t *db, agent_error_t **err,
                                          apr_pool_t *pool)
{
    PostgresPollingStatusType status = db->resetting ? PQresetPoll(db->conn)
                                                     : PQconnectPoll(db->conn);

    switch (status) {
    case PGRES_POLLING_READING:
        return AGENT_DB_WANT_READ;
    case PGRES_POLLING_WRITING:
        return AGENT_DB_WANT_WRITE;
    case PGRES_POLLING_OK:
        db->broken = false;
        PQsetnonblocking(db->conn, 1);
        return AGENT_DB_READY;
    default:
        agent_db_set_lost(db, err, pool);
        return AGENT_DB_FAILED;
    }
}

apr_interval_time_t agent_db_host_timeout(const agent_db_t *db,
                                          apr_interval_time_t whole)
{
    PQconninfoOption *options = PQconninfo(db->conn);
    int hosts = 1;

    for (PQconninfoOption *o = options; o != NULL && o->keyword != NULL; o++) {
        if (strcmp(o->keyword, "host") == 0 && o->val != NULL) {
            for (const char *p = o->val; *p != '\0'; p++) {
                hosts += *p == ',';
            }
        }
    }
    PQconninfoFree(options);
    return whole / hosts;
}

void agent_db_skip_host(const agent_db_t *db)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);

    if (getpeername(PQsocket(db->conn), (struct sockaddr *)&peer, &length)
        != 0) {
        /* libpq handles the failed connect like a refused one. */
        shutdown(PQsocket(db->conn), SHUT_RDWR);
    }
}

/* Like agent_db_wait(), with the time limit of each host. */
static bool wait_for_hosts(const agent_db_t *db, agent_db_progress_t want,
                           apr_interval_time_t share, apr_time_t deadline)
{
    apr_time_t until = apr_time_now() + share;

    if (until < deadline && !agent_db_wait(db, want, until)) {
        agent_db_skip_host(db);
    }
    return agent_db_wait(db, want, deadline);
}

static apr_status_t await_connection(agent_db_t *db, agent_error_t **err,
                                     apr_pool_t *pool)
{
    apr_time_t deadline = apr_time_now() + db->settings.connect_timeout;
    agent_db_progress_t progress = AGENT_DB_WANT_WRITE;
    apr_interval_time_t share = agent_db_host_timeout(
        db, db->settings.connect_timeout);

    while (progress != AGENT_DB_READY) {
        if (!wait_for_hosts(db, progress, share, deadline)) {
            return agent_db_set_lost(db, err, pool);
        }
        progress = agent_db_connect_step(db, err, pool);
        if (progress == AGENT_DB_FAILED) {
            return APR_EGENERAL;
        }
    }
    return APR_SUCCESS;
}

apr_status_t agent_db_open(agent_db_t **out, const char *conninfo,
                           const char *application_name,
                           const agent_db_settings_t *settings,
                           agent_error_t **err, apr_pool_t *pool)
{
    apr_status_t rv = agent_db_connect(out, conninfo, application_name, NULL,
                                       err, pool);

    (*out)->settings = *settings;
    return rv == APR_SUCCESS ? await_connection(*out, err, pool) : rv;
}

bool agent_db_is_superuser(const agent_db_t *db)
{
    const char *value = PQparameterStatus(db->conn, "is_superuser");

    return value != NULL && strcmp(value, "on") == 0;
}

static apr_status_t try_reset(agent_db_t *db, agent_error_t **err,
                              apr_pool_t *pool)
{
    db->backend_pid = 0;
    db->resetting = true;
    if (PQresetStart(db->conn) == 0) {
        return agent_db_set_lost(db, err, pool);
    }
    return await_connection(db, err, pool);
}

apr_status_t agent_db_reset(agent_db_t *db, agent_error_t **err,
                            apr_pool_t *pool)
{
    apr_status_t rv = try_reset(db, err, pool);

    db->unreachable = rv != APR_SUCCESS;
    return rv;
}

bool agent_db_needs_reset(const agent_db_t *db)
{
    struct pollfd socket = {.fd = PQsocket(db->conn), .events = POLLIN};

    return db->broken || PQstatus(db->conn) != CONNECTION_OK || socket.fd < 0
        || poll(&socket, 1, 0) != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* mod_dbd's connections behind a bounded wait; see pool.h. */
#include "pool.h"

#include <apr_dbd.h>
#include <apr_optional.h>
#include <apr_thread_cond.h>
#include <apr_thread_mutex.h>

#include <httpd.h>
#include <mod_dbd.h>

struct agent_pool_t {
    server_rec *server;
    agent_db_limits_t limits;
    apr_interval_time_t wait;
    apr_thread_mutex_t *mutex;
    apr_thread_cond_t *freed;
    /* Under mutex: */
    int free;
    /* The last attempt to get a connection failed. */
    bool down;
    /* While down, one request at a time asks again; the others fail at once
     * instead of queueing behind a connect that may take seconds. */
    bool probing;
    /* mod_dbd's functions, looked up once. */
    APR_OPTIONAL_FN_TYPE(ap_dbd_open) * open;
    APR_OPTIONAL_FN_TYPE(ap_dbd_close) * close;
};

static const char wrapper_key[] = "agent_db";

apr_status_t agent_pool_create(agent_pool_t **out, void *server, int size,
                               apr_interval_time_t wait,
                               const agent_db_limits_t *limits,
                               apr_pool_t *pool)
{
    agent_pool_t *made = apr_pcalloc(pool, sizeof(*made));
    apr_status_t rv;

    made->server = server;
    made->limits = *limits;
    made->wait = wait;
    made->free = size;
    made->open = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_open);
    made->close = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_close);
    *out = made;
    rv = apr_thread_mutex_create(&made->mutex, APR_THREAD_MUTEX_DEFAULT, pool);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    return apr_thread_cond_create(&made->freed, pool);
}

/* Takes one of the places; the mutex is held. */
static apr_status_t take_place_locked(agent_pool_t *connections)
{
    apr_time_t deadline = apr_time_now() + connections->wait;

    while (connections->free == 0) {
        apr_interval_time_t left = deadline - apr_time_now();

        if (left <= 0) {
            return APR_TIMEUP;
        }
        apr_thread_cond_timedwait(connections->freed, connections->mutex, left);
    }
    connections->free--;
    return APR_SUCCESS;
}

static apr_status_t enter(agent_pool_t *connections, agent_error_t **err,
                          apr_pool_t *pool)
{
    apr_status_t rv;
    bool refused;

    apr_thread_mutex_lock(connections->mutex);
    rv = take_place_locked(connections);
    refused = rv == APR_SUCCESS && connections->down && connections->probing;
    if (refused) {
        connections->free++;
        apr_thread_cond_signal(connections->freed);
    }
    else if (rv == APR_SUCCESS && connections->down) {
        connections->probing = true;
    }
    apr_thread_mutex_unlock(connections->mutex);
    if (rv != APR_SUCCESS) {
        return agent_error_set(err, AGENT_E_POOL_EXHAUSTED, NULL,
                               "every connection of this child is in use",
                               pool);
    }
    return refused
        ? agent_error_set(err, AGENT_E_UNAVAILABLE, NULL,
                          "another request is trying to connect", pool)
        : APR_SUCCESS;
}

static void leave(agent_pool_t *connections, bool reached)
{
    apr_thread_mutex_lock(connections->mutex);
    connections->free++;
    connections->down = !reached;
    connections->probing = false;
    apr_thread_cond_signal(connections->freed);
    apr_thread_mutex_unlock(connections->mutex);
}

/* Our side of a connection lives as long as the connection itself. */
static agent_db_t *find_wrapper(const agent_pool_t *connections,
                                ap_dbd_t *handle)
{
    void *db = NULL;

    apr_pool_userdata_get(&db, wrapper_key, handle->pool);
    if (db == NULL) {
        db = agent_db_wrap(
            apr_dbd_native_handle(handle->driver, handle->handle),
            &connections->limits, handle->pool);
        apr_pool_userdata_setn(db, wrapper_key, NULL, handle->pool);
    }
    return db;
}

apr_status_t agent_pool_query(agent_db_result_t **result,
                              agent_pool_t *connections,
                              agent_statement_t statement,
                              const char *const *params, agent_error_t **err,
                              apr_pool_t *pool)
{
    apr_status_t rv = enter(connections, err, pool);
    ap_dbd_t *handle;
    agent_db_t *db;
    bool reached;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    handle = connections->open(pool, connections->server);
    if (handle == NULL) {
        leave(connections, false);
        return agent_error_set(err, AGENT_E_UNAVAILABLE, NULL,
                               "mod_dbd gave no connection (see its own "
                               "message)",
                               pool);
    }
    db = find_wrapper(connections, handle);
    rv = agent_db_query(result, db, statement, params, err, pool);
    reached = !agent_db_unreachable(db);
    connections->close(connections->server, handle);
    leave(connections, reached);
    return rv;
}

apr_status_t agent_pool_call(const char **body, agent_pool_t *connections,
                             agent_statement_t statement,
                             const char *const *params, agent_error_t **err,
                             apr_pool_t *pool)
{
    agent_db_result_t *result = NULL;
    apr_status_t rv = agent_pool_query(&result, connections, statement, params,
                                       err, pool);

    *body = NULL;
    return rv == APR_SUCCESS ? agent_db_read_code(body, result, err, pool) : rv;
}

apr_status_t agent_pool_call_extra(const char **body, const char **extra,
                                   agent_pool_t *connections,
                                   agent_statement_t statement,
                                   const char *const *params,
                                   agent_error_t **err, apr_pool_t *pool)
{
    agent_db_result_t *result = NULL;
    apr_status_t rv = agent_pool_query(&result, connections, statement, params,
                                       err, pool);

    *body = NULL;
    *extra = NULL;
    if (rv == APR_SUCCESS) {
        rv = agent_db_read_code(body, result, err, pool);
    }
    if (rv == APR_SUCCESS) {
        *extra = agent_db_value(result, 0, 2);
    }
    return rv;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of mod_dbd with a bounded wait; see pool.h. */
#include "pool.h"

#include <apr_dbd.h>
#include <apr_hash.h>
#include <apr_optional.h>
#include <apr_thread_cond.h>
#include <apr_thread_mutex.h>

#include <httpd.h>
#include <mod_dbd.h>

#include "../core/allocator.h"
#include "../core/child_thread.h"
#include "connection.h"

/* Memory that libpq's buffers may keep: for all connections together, and for
 * each one in any case. A new connection takes some milliseconds, so it pays
 * only after large texts. */
#define KEPT_BYTES  ((apr_size_t)1024 * 1024)
#define SMALL_BYTES ((apr_size_t)512 * 1024)
/* How long a request whose response made the buffers grow waits for other
 * threads that replace their connections. */
#define OPENING_WAIT apr_time_from_sec(2)
/* After a failure new connections are tried during a hundredth of the time
 * only, so that few requests wait for a PostgreSQL that accepts none. */
#define FAILURE_PAUSE      apr_time_from_sec(10)
#define FAILURE_FACTOR     100
#define FAILURE_LAST_PAUSE apr_time_from_sec(300)

/* Limits how many requests use connections at the same time. */
typedef struct slots_t {
    apr_interval_time_t wait;
    apr_thread_mutex_t *mutex;
    apr_thread_cond_t *freed;
    /* Under mutex. */
    int free;
} slots_t;

struct agent_db_pool_t {
    slots_t slots;
    /* The pool that this is a part of, or NULL. A part has only slots. */
    agent_db_pool_t *whole;
    server_rec *server;
    /* Connection string of mod_dbd; NULL = connections are not replaced. */
    const char *params;
    agent_db_settings_t settings;
    /* Under the mutex of the slots: */
    /* The last attempt to get a connection failed. */
    bool down;
    /* While down, one request at a time tries to connect; the others fail at
     * once instead of waiting for an attempt that may take seconds. */
    bool probing;
    apr_size_t kept_bytes;
    /* Under `opening`: the memory of replacements, 24 bytes each, and the
     * earliest time of the next attempt. */
    apr_pool_t *replacements;
    apr_time_t open_at;
    apr_thread_mutex_t *opening;
    /* mod_dbd's functions, looked up once. */
    APR_OPTIONAL_FN_TYPE(ap_dbd_open) * open;
    APR_OPTIONAL_FN_TYPE(ap_dbd_close) * close;
};

/* Our data of a connection of mod_dbd. */
typedef struct wrapper_t {
    agent_db_pool_t *connections;
    agent_db_t *db;
    /* Its part of connections->kept_bytes. */
    apr_size_t kept_bytes;
    apr_pool_t *pool;
} wrapper_t;

static const char wrapper_key[] = "agent_db";

static apr_status_t init_slots(slots_t *slots, int size,
                               apr_interval_time_t wait, apr_pool_t *pool)
{
    apr_status_t rv = apr_thread_mutex_create(&slots->mutex,
                                              APR_THREAD_MUTEX_DEFAULT, pool);

    slots->wait = wait;
    slots->free = size;
    return rv == APR_SUCCESS ? apr_thread_cond_create(&slots->freed, pool) : rv;
}

apr_status_t agent_db_pool_create(agent_db_pool_t **out, void *server,
                                  const char *params, int size,
                                  apr_interval_time_t wait,
                                  const agent_db_settings_t *settings,
                                  apr_pool_t *pool)
{
    agent_db_pool_t *made = apr_pcalloc(pool, sizeof(*made));
    apr_status_t rv;

    made->server = server;
    made->params = params;
    made->settings = *settings;
    made->open = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_open);
    made->close = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_close);
    *out = made;
    made->replacements = agent_allocator_make_private(pool);
    rv = init_slots(&made->slots, size, wait, pool);
    return rv == APR_SUCCESS
        ? apr_thread_mutex_create(&made->opening, APR_THREAD_MUTEX_TIMED, pool)
        : rv;
}

apr_status_t agent_db_pool_create_part(agent_db_pool_t **out,
                                       agent_db_pool_t *whole, int size,
                                       apr_interval_time_t wait,
                                       apr_pool_t *pool)
{
    *out = apr_pcalloc(pool, sizeof(**out));
    (*out)->whole = whole;
    return init_slots(&(*out)->slots, size, wait, pool);
}

/* Waits for a free slot. */
static apr_status_t take_slot_locked(slots_t *slots)
{
    apr_time_t deadline = apr_time_now() + slots->wait;

    while (slots->free == 0) {
        apr_interval_time_t left = deadline - apr_time_now();

        if (left <= 0) {
            return APR_TIMEUP;
        }
        apr_thread_cond_timedwait(slots->freed, slots->mutex, left);
    }
    slots->free--;
    return APR_SUCCESS;
}

static void free_slot_locked(slots_t *slots)
{
    slots->free++;
    apr_thread_cond_signal(slots->freed);
}

static apr_status_t report_exhausted(agent_error_t **err, apr_pool_t *pool)
{
    return agent_error_set(err, AGENT_E_POOL_EXHAUSTED, NULL,
                           "every connection of this child is in use", pool);
}

static apr_status_t acquire_part(agent_db_pool_t *part, agent_error_t **err,
                                 apr_pool_t *pool)
{
    apr_status_t rv;

    apr_thread_mutex_lock(part->slots.mutex);
    rv = take_slot_locked(&part->slots);
    apr_thread_mutex_unlock(part->slots.mutex);
    return rv == APR_SUCCESS ? APR_SUCCESS : report_exhausted(err, pool);
}

static void release_part(agent_db_pool_t *part)
{
    apr_thread_mutex_lock(part->slots.mutex);
    free_slot_locked(&part->slots);
    apr_thread_mutex_unlock(part->slots.mutex);
}

static apr_status_t acquire_slot(agent_db_pool_t *connections,
                                 agent_error_t **err, apr_pool_t *pool)
{
    apr_status_t rv;
    bool refused;

    apr_thread_mutex_lock(connections->slots.mutex);
    rv = take_slot_locked(&connections->slots);
    refused = rv == APR_SUCCESS && connections->down && connections->probing;
    if (refused) {
        free_slot_locked(&connections->slots);
    }
    else if (rv == APR_SUCCESS && connections->down) {
        connections->probing = true;
    }
    apr_thread_mutex_unlock(connections->slots.mutex);
    if (rv != APR_SUCCESS) {
        return report_exhausted(err, pool);
    }
    return refused
        ? agent_error_set(err, AGENT_E_UNAVAILABLE, NULL,
                          "another request is trying to connect", pool)
        : APR_SUCCESS;
}

static void release_slot(agent_db_pool_t *connections, bool reached)
{
    apr_thread_mutex_lock(connections->slots.mutex);
    connections->down = !reached;
    connections->probing = false;
    free_slot_locked(&connections->slots);
    apr_thread_mutex_unlock(connections->slots.mutex);
}

/* Sets the kept bytes of a connection; returns the total of all. */
static apr_size_t count_kept(wrapper_t *wrapper, apr_size_t bytes)
{
    agent_db_pool_t *connections = wrapper->connections;
    apr_size_t all;

    apr_thread_mutex_lock(connections->slots.mutex);
    connections->kept_bytes += bytes - wrapper->kept_bytes;
    all = connections->kept_bytes;
    apr_thread_mutex_unlock(connections->slots.mutex);
    wrapper->kept_bytes = bytes;
    return all;
}

static apr_status_t forget_kept(void *data)
{
    count_kept(data, 0);
    return APR_SUCCESS;
}

static wrapper_t *make_wrapper(agent_db_pool_t *connections, ap_dbd_t *handle)
{
    apr_pool_t *pool = agent_allocator_make_private(handle->pool);
    wrapper_t *wrapper = apr_pcalloc(pool, sizeof(*wrapper));

    wrapper->connections = connections;
    wrapper->pool = pool;
    wrapper->db = agent_db_wrap(
        apr_dbd_native_handle(handle->driver, handle->handle),
        &connections->settings, pool);
    apr_pool_cleanup_register(pool, wrapper, forget_kept,
                              apr_pool_cleanup_null);
    apr_pool_userdata_setn(wrapper, wrapper_key, NULL, handle->pool);
    return wrapper;
}

/* Our data lives as long as the connection. */
static wrapper_t *find_wrapper(agent_db_pool_t *connections, ap_dbd_t *handle)
{
    void *wrapper = NULL;

    apr_pool_userdata_get(&wrapper, wrapper_key, handle->pool);
    return wrapper != NULL ? wrapper : make_wrapper(connections, handle);
}

/* ---- connections with large buffers ---- */

/* Its memory is not in the handle's pool: other threads use its allocator, and
 * mod_dbd's cleanup needs the memory until the child ends. */
static apr_dbd_t *open_locked(agent_db_pool_t *connections,
                              const apr_dbd_driver_t *driver)
{
    apr_time_t start = apr_time_now();
    const char *message = NULL;
    apr_dbd_t *replacement = NULL;

    if (start < connections->open_at) {
        return NULL;
    }
    if (apr_dbd_open_ex(driver, connections->replacements, connections->params,
                        &replacement, &message)
        != APR_SUCCESS) {
        apr_time_t now = apr_time_now();
        apr_interval_time_t pause = FAILURE_FACTOR * (now - start);

        pause = pause < FAILURE_LAST_PAUSE ? pause : FAILURE_LAST_PAUSE;
        connections->open_at = now
            + (pause > FAILURE_PAUSE ? pause : FAILURE_PAUSE);
        return NULL;
    }
    return replacement;
}

/* NULL: the database refused, now or a short time ago, or another thread was
 * connecting for longer than `wait`; the caller must not wait longer, since it
 * serves a request. */
static apr_dbd_t *open_new(agent_db_pool_t *connections,
                           const apr_dbd_driver_t *driver,
                           apr_interval_time_t wait)
{
    apr_status_t rv = wait > 0
        ? apr_thread_mutex_timedlock(connections->opening, wait)
        : apr_thread_mutex_trylock(connections->opening);
    apr_dbd_t *replacement = NULL;

    if (rv == APR_SUCCESS) {
        replacement = open_locked(connections, driver);
        apr_thread_mutex_unlock(connections->opening);
    }
    return replacement;
}

/* Frees the buffers, which libpq never shrinks. */
static void replace_connection(wrapper_t *wrapper, ap_dbd_t *handle,
                               apr_interval_time_t wait)
{
    apr_dbd_t *replacement = open_new(wrapper->connections, handle->driver,
                                      wait);

    if (replacement == NULL) {
        return;
    }
    apr_dbd_close(handle->driver, handle->handle);
    handle->handle = replacement;
    apr_pool_userdata_setn(NULL, wrapper_key, NULL, handle->pool);
    agent_allocator_end_private(handle->pool, wrapper->pool);
}

/* Called before the connection is returned. If it cannot be replaced, later
 * queries on it try again without waiting for other threads. A connection with
 * statements prepared by mod_dbd is not replaced. */
static void limit_kept(wrapper_t *wrapper, ap_dbd_t *handle)
{
    agent_db_pool_t *connections = wrapper->connections;
    apr_size_t bytes = wrapper->db->largest_text;
    bool has_grown = bytes > wrapper->kept_bytes;

    if (bytes >= SMALL_BYTES && count_kept(wrapper, bytes) > KEPT_BYTES
        && connections->params != NULL
        && apr_hash_count(handle->prepared) == 0) {
        replace_connection(wrapper, handle, has_grown ? OPENING_WAIT : 0);
    }
}

/* Between open and close. */
static apr_status_t query_slot(agent_db_result_t **result,
                               agent_db_pool_t *connections,
                               const agent_statement_t *statement,
                               const char *const *params, bool *reached,
                               agent_error_t **err, apr_pool_t *pool)
{
    ap_dbd_t *handle = connections->open(pool, connections->server);
    wrapper_t *wrapper;
    apr_status_t rv;

    *reached = false;
    if (handle == NULL) {
        return agent_error_set(err, AGENT_E_UNAVAILABLE, NULL,
                               "mod_dbd gave no connection (see its own "
                               "message)",
                               pool);
    }
    wrapper = find_wrapper(connections, handle);
    rv = agent_db_query(result, wrapper->db, statement, params, err, pool);
    *reached = !agent_db_unreachable(wrapper->db);
    if (*reached) {
        limit_kept(wrapper, handle);
    }
    connections->close(connections->server, handle);
    return rv;
}

static apr_status_t query_whole(agent_db_result_t **result,
                                agent_db_pool_t *connections,
                                const agent_statement_t *statement,
                                const char *const *params, agent_error_t **err,
                                apr_pool_t *pool)
{
    apr_status_t rv = acquire_slot(connections, err, pool);
    bool reached;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = query_slot(result, connections, statement, params, &reached, err,
                    pool);
    release_slot(connections, reached);
    return rv;
}

static apr_status_t query_part(agent_db_result_t **result,
                               agent_db_pool_t *part,
                               const agent_statement_t *statement,
                               const char *const *params, agent_error_t **err,
                               apr_pool_t *pool)
{
    apr_status_t rv = acquire_part(part, err, pool);

    if (rv == APR_SUCCESS) {
        rv = query_whole(result, part->whole, statement, params, err, pool);
        release_part(part);
    }
    return rv;
}

/* SIGTERM and SIGHUP are blocked: a child of the prefork MPM destroys its pools
 * in their handlers. mod_dbd's list of connections would then abort the child
 * if one is in use, and the mutexes and the condition here would make it
 * hang. */
apr_status_t agent_db_pool_query(agent_db_result_t **result,
                                 agent_db_pool_t *connections,
                                 const agent_statement_t *statement,
                                 const char *const *params, agent_error_t **err,
                                 apr_pool_t *pool)
{
    sigset_t before;
    apr_status_t rv;

    if (connections == NULL) {
        return agent_error_set(err, AGENT_E_UNAVAILABLE,
                               "This server has no database (DBDriver, "
                               "DBDParams).",
                               NULL, pool);
    }
    agent_child_thread_block_signals(&before);
    rv = connections->whole == NULL
        ? query_whole(result, connections, statement, params, err, pool)
        : query_part(result, connections, statement, params, err, pool);
    agent_child_thread_restore_signals(&before);
    return rv;
}

apr_status_t agent_db_pool_call(const char **body, agent_db_pool_t *connections,
                                const agent_statement_t *statement,
                                const char *const *params, agent_error_t **err,
                                apr_pool_t *pool)
{
    agent_db_result_t *result = NULL;
    apr_status_t rv = agent_db_pool_query(&result, connections, statement,
                                          params, err, pool);

    *body = NULL;
    return rv == APR_SUCCESS ? agent_db_read_code(body, result, err, pool) : rv;
}

apr_status_t agent_db_pool_call_extra(const char **body, const char **extra,
                                      agent_db_pool_t *connections,
                                      const agent_statement_t *statement,
                                      const char *const *params,
                                      agent_error_t **err, apr_pool_t *pool)
{
    agent_db_result_t *result = NULL;
    apr_status_t rv = agent_db_pool_query(&result, connections, statement,
                                          params, err, pool);

    *body = NULL;
    if (extra != NULL) {
        *extra = NULL;
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = agent_db_read_code(body, result, err, pool);
    if (extra != NULL && (rv == APR_SUCCESS || APR_STATUS_IS_EAGAIN(rv))) {
        *extra = agent_db_value(result, 0, 2);
    }
    return rv;
}

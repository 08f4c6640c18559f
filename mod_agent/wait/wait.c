/* SPDX-License-Identifier: Apache-2.0 */
/* The wake thread and the requests that wait for runs; see wait.h. */
#include "wait.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <apr_hash.h>
#include <apr_strings.h>
#include <apr_thread_cond.h>
#include <apr_thread_mutex.h>
#include <apr_thread_proc.h>

#include "../db/listen.h"

/* How long a waiter sleeps while the listener is disconnected. */
#define DEAF_INTERVAL apr_time_from_sec(1)

struct agent_waits_t {
    agent_log_t log;
    apr_thread_t *thread;
    agent_listener_t *listener;
    int stop_fds[2];
    apr_thread_mutex_t *mutex;
    /* Under mutex: */
    apr_hash_t *waiters; /* run id -> first agent_waiter_t of the chain */
    int free;
    bool stopping;
    apr_time_t stop_at;
    bool hearing;
    apr_time_t last_complaint;
};

struct agent_waiter_t {
    agent_waits_t *waits;
    const char *run_id;
    agent_waiter_t *next;
    apr_thread_cond_t *woken_cond;
    bool woken;
};

/* ---- events of the listener, in the wake thread ---- */

static void wake_chain_locked(agent_waiter_t *waiter)
{
    for (; waiter != NULL; waiter = waiter->next) {
        waiter->woken = true;
        apr_thread_cond_signal(waiter->woken_cond);
    }
}

static void wake_all_locked(agent_waits_t *waits)
{
    apr_hash_index_t *index = apr_hash_first(NULL, waits->waiters);

    for (; index != NULL; index = apr_hash_next(index)) {
        wake_chain_locked(apr_hash_this_val(index));
    }
}

/* The payload is the ids of runs, separated by spaces. */
static void on_notified(void *baton, const char *payload)
{
    agent_waits_t *waits = baton;

    apr_thread_mutex_lock(waits->mutex);
    while (*payload != '\0') {
        size_t length = strcspn(payload, " ");

        wake_chain_locked(
            apr_hash_get(waits->waiters, payload, (apr_ssize_t)length));
        payload += length;
        payload += strspn(payload, " ");
    }
    apr_thread_mutex_unlock(waits->mutex);
}

static void on_connected(void *baton)
{
    agent_waits_t *waits = baton;

    apr_thread_mutex_lock(waits->mutex);
    waits->hearing = true;
    wake_all_locked(waits);
    apr_thread_mutex_unlock(waits->mutex);
}

static void on_lost(void *baton, const char *cause)
{
    agent_waits_t *waits = baton;
    apr_time_t now = apr_time_now();
    bool complain;
    char text[512];

    apr_thread_mutex_lock(waits->mutex);
    waits->hearing = false;
    complain = now - waits->last_complaint > apr_time_from_sec(60);
    if (complain) {
        waits->last_complaint = now;
    }
    apr_thread_mutex_unlock(waits->mutex);
    if (complain) {
        apr_snprintf(text, sizeof(text),
                     "no LISTEN connection, requests that wait poll instead: "
                     "%s",
                     cause);
        text[strcspn(text, "\n")] = '\0';
        waits->log.write(waits->log.baton, AGENT_LOG_WARNING, "AGT0201", 0,
                         text);
    }
}

static void *APR_THREAD_FUNC run_listener(apr_thread_t *thread, void *data)
{
    agent_waits_t *waits = data;

    agent_listener_run(waits->listener);
    return NULL;
}

/* ---- life of the wake thread ---- */

/* The MPM's signals are for its own threads. */
static apr_status_t start_thread(agent_waits_t *waits, apr_pool_t *pool)
{
    apr_status_t rv;
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rv = apr_thread_create(&waits->thread, NULL, run_listener, waits, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rv;
}

static apr_status_t end_thread(void *data)
{
    agent_waits_t *waits = data;
    apr_status_t thread_status;

    agent_waits_stop(waits, 0);
    close(waits->stop_fds[1]);
    if (waits->thread != NULL) {
        apr_thread_join(&thread_status, waits->thread);
    }
    close(waits->stop_fds[0]);
    return APR_SUCCESS;
}

apr_status_t agent_waits_create(agent_waits_t **out, const char *conninfo,
                                int max, const agent_log_t *log,
                                apr_pool_t *pool)
{
    agent_waits_t *waits = apr_pcalloc(pool, sizeof(*waits));
    agent_listener_events_t events = {on_notified, on_connected, on_lost,
                                      waits};
    apr_status_t rv;

    waits->log = *log;
    waits->free = max;
    waits->waiters = apr_hash_make(pool);
    rv = apr_thread_mutex_create(&waits->mutex, APR_THREAD_MUTEX_DEFAULT, pool);
    if (rv == APR_SUCCESS && pipe(waits->stop_fds) != 0) {
        rv = apr_get_os_error();
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    waits->listener = agent_listener_create(conninfo, "agent_runs",
                                            waits->stop_fds[0], &events, pool);
    /* Before the pool's own end: the thread still uses what is in it. */
    apr_pool_pre_cleanup_register(pool, waits, end_thread);
    *out = waits;
    return start_thread(waits, pool);
}

void agent_waits_stop(agent_waits_t *waits, apr_interval_time_t grace)
{
    apr_thread_mutex_lock(waits->mutex);
    waits->stopping = true;
    waits->stop_at = apr_time_now() + grace;
    wake_all_locked(waits);
    apr_thread_mutex_unlock(waits->mutex);
}

/* ---- waiters ---- */

static void enter_locked(agent_waits_t *waits, agent_waiter_t *waiter)
{
    waiter->next = apr_hash_get(waits->waiters, waiter->run_id,
                                APR_HASH_KEY_STRING);
    /* Removing first: the key must be the text of the chain's first waiter,
     * which lives as long as it leads. */
    apr_hash_set(waits->waiters, waiter->run_id, APR_HASH_KEY_STRING, NULL);
    apr_hash_set(waits->waiters, waiter->run_id, APR_HASH_KEY_STRING, waiter);
    waits->free--;
}

apr_status_t agent_wait_enter(agent_waiter_t **out, agent_waits_t *waits,
                              const char *run_id, agent_error_t **err,
                              apr_pool_t *pool)
{
    agent_waiter_t *waiter = apr_pcalloc(pool, sizeof(*waiter));
    agent_error_id_t problem = AGENT_E_INTERNAL;
    apr_status_t rv = apr_thread_cond_create(&waiter->woken_cond, pool);

    if (rv != APR_SUCCESS) {
        return agent_error_set(err, AGENT_E_INTERNAL, NULL,
                               "no condition variable", pool);
    }
    waiter->waits = waits;
    waiter->run_id = run_id;
    apr_thread_mutex_lock(waits->mutex);
    if (waits->stopping) {
        problem = AGENT_E_SHUTTING_DOWN;
        rv = APR_EGENERAL;
    }
    else if (waits->free == 0) {
        problem = AGENT_E_OVERLOADED;
        rv = APR_EGENERAL;
    }
    else {
        enter_locked(waits, waiter);
    }
    apr_thread_mutex_unlock(waits->mutex);
    *out = waiter;
    return rv == APR_SUCCESS ? rv
                             : agent_error_set(err, problem, NULL, NULL, pool);
}

/* How long this wait may sleep: until its time-out, or the child's end. */
static apr_interval_time_t time_left_locked(const agent_waits_t *waits,
                                            apr_time_t deadline)
{
    if (waits->stopping && waits->stop_at < deadline) {
        deadline = waits->stop_at;
    }
    return deadline - apr_time_now();
}

agent_wait_t agent_wait_for(agent_waiter_t *waiter, apr_interval_time_t timeout)
{
    agent_waits_t *waits = waiter->waits;
    agent_wait_t result = AGENT_WAIT_TIMEOUT;
    apr_time_t deadline;

    apr_thread_mutex_lock(waits->mutex);
    if (!waits->hearing && timeout > DEAF_INTERVAL) {
        timeout = DEAF_INTERVAL;
    }
    deadline = apr_time_now() + timeout;
    while (!waiter->woken) {
        apr_interval_time_t left = time_left_locked(waits, deadline);

        if (left <= 0) {
            break;
        }
        apr_thread_cond_timedwait(waiter->woken_cond, waits->mutex, left);
    }
    if (waits->stopping && apr_time_now() >= waits->stop_at) {
        result = AGENT_WAIT_STOPPING;
    }
    else if (waiter->woken) {
        result = AGENT_WAIT_WOKEN;
    }
    waiter->woken = false;
    apr_thread_mutex_unlock(waits->mutex);
    return result;
}

void agent_wait_leave(agent_waiter_t *waiter)
{
    agent_waits_t *waits = waiter->waits;
    agent_waiter_t *first;
    agent_waiter_t **link;

    apr_thread_mutex_lock(waits->mutex);
    first = apr_hash_get(waits->waiters, waiter->run_id, APR_HASH_KEY_STRING);
    apr_hash_set(waits->waiters, waiter->run_id, APR_HASH_KEY_STRING, NULL);
    for (link = &first; *link != NULL; link = &(*link)->next) {
        if (*link == waiter) {
            *link = waiter->next;
            break;
        }
    }
    if (first != NULL) {
        apr_hash_set(waits->waiters, first->run_id, APR_HASH_KEY_STRING, first);
    }
    waits->free++;
    apr_thread_mutex_unlock(waits->mutex);
}

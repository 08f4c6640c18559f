/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatch of requests that wait for their clients. */
#include "client_dispatch.h"

#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <apr_hash.h>
#include <apr_ring.h>

#include "../core/allocator.h"
#include "../core/child_thread.h"
#include "../core/lock.h"
#include "epoll.h"

/* Instead of a wait's serial number. */
#define END_SERIAL 0
#define EVENTS     64

typedef enum wait_state_t {
    /* For its client, or not at all. */
    STATE_WAITS,
    STATE_QUEUED,
    STATE_DISPATCHED,
    STATE_ENDED
} wait_state_t;

struct agent_client_wait_t {
    /* In dispatch->queue, while queued. */
    APR_RING_ENTRY(agent_client_wait_t) link;
    agent_client_dispatch_t *dispatch;
    /* Identifies the wait in epoll events, which may outlive it. */
    apr_uint64_t serial;
    int client_fd;
    int wake_fd;
    /* Under the lock. */
    wait_state_t state;
};

APR_RING_HEAD(wait_ring_t, agent_client_wait_t);

struct agent_client_dispatch_t {
    apr_thread_t *thread;
    int most;
    /* Ends the thread. */
    int end_fd;
    agent_lock_t *lock;
    /* Under the lock: */
    int epoll_fd; /* -1 after the end of the thread */
    apr_hash_t *by_serial;
    apr_uint64_t last_serial;
    struct wait_ring_t
        queue; /* their clients are ready; the first ones first */
    int dispatched;
};

/* ---- the queue ---- */

static void dispatch_locked(agent_client_dispatch_t *dispatch)
{
    while (dispatch->dispatched < dispatch->most
           && !APR_RING_EMPTY(&dispatch->queue, agent_client_wait_t, link)) {
        agent_client_wait_t *wait = APR_RING_FIRST(&dispatch->queue);

        APR_RING_REMOVE(wait, link);
        wait->state = STATE_DISPATCHED;
        dispatch->dispatched++;
        (void)!eventfd_write(wait->wake_fd, 1);
    }
}

static void enqueue_locked(agent_client_dispatch_t *dispatch,
                           agent_client_wait_t *wait)
{
    wait->state = STATE_QUEUED;
    APR_RING_INSERT_TAIL(&dispatch->queue, wait, agent_client_wait_t, link);
}

/* Removes the wait from the queue, or frees its dispatch slot. */
static void release_locked(agent_client_wait_t *wait)
{
    if (wait->state == STATE_QUEUED) {
        APR_RING_REMOVE(wait, link);
    }
    if (wait->state == STATE_DISPATCHED) {
        wait->dispatch->dispatched--;
    }
    wait->state = STATE_WAITS;
}

/* ---- the thread ---- */

/* False: the thread must end. */
static bool handle_event_locked(agent_client_dispatch_t *dispatch,
                                apr_uint64_t serial)
{
    agent_client_wait_t *wait = apr_hash_get(dispatch->by_serial, &serial,
                                             sizeof(serial));

    /* A reset is an event even before agent_client_dispatch_begin_wait(). */
    if (wait != NULL && wait->state == STATE_WAITS) {
        enqueue_locked(dispatch, wait);
    }
    return serial != END_SERIAL;
}

static void *APR_THREAD_FUNC run(apr_thread_t *thread, void *data)
{
    agent_client_dispatch_t *dispatch = data;
    bool continues = true;

    while (continues) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(dispatch->epoll_fd, events, EVENTS, -1);

        agent_lock_take(dispatch->lock);
        for (int i = 0; i < count; i++) {
            continues = handle_event_locked(dispatch, events[i].data.u64)
                && continues;
        }
        dispatch_locked(dispatch);
        agent_lock_release(dispatch->lock);
    }
    return NULL;
}

static apr_status_t end_thread(void *data)
{
    agent_client_dispatch_t *dispatch = data;

    (void)!eventfd_write(dispatch->end_fd, 1);
    agent_child_thread_join(dispatch->thread);
    agent_lock_take(dispatch->lock);
    close(dispatch->epoll_fd);
    dispatch->epoll_fd = -1;
    agent_lock_release(dispatch->lock);
    close(dispatch->end_fd);
    return APR_SUCCESS;
}

static apr_status_t open_descriptors(agent_client_dispatch_t *dispatch)
{
    dispatch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    dispatch->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (dispatch->epoll_fd < 0 || dispatch->end_fd < 0) {
        return apr_get_os_error();
    }
    return agent_epoll_control(dispatch->epoll_fd, EPOLL_CTL_ADD,
                               dispatch->end_fd, END_SERIAL, EPOLLIN);
}

apr_status_t agent_client_dispatch_create(agent_client_dispatch_t **out,
                                          int most, apr_pool_t *pool)
{
    agent_client_dispatch_t *dispatch = apr_pcalloc(pool, sizeof(*dispatch));
    apr_status_t rv = agent_lock_create(&dispatch->lock, pool);

    dispatch->most = most;
    dispatch->by_serial = apr_hash_make(agent_allocator_make_private(pool));
    dispatch->last_serial = END_SERIAL;
    APR_RING_INIT(&dispatch->queue, agent_client_wait_t, link);
    if (rv == APR_SUCCESS) {
        rv = open_descriptors(dispatch);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    /* Before subpools are destroyed: the thread still uses them. */
    apr_pool_pre_cleanup_register(pool, dispatch, end_thread);
    *out = dispatch;
    return agent_child_thread_start(&dispatch->thread, run, dispatch, pool);
}

/* ---- waits ---- */

/* One event only, and none before agent_client_dispatch_begin_wait(): the
 * worker that has the connection reads without being dispatched. */
static apr_status_t add(agent_client_dispatch_t *dispatch,
                        agent_client_wait_t *wait)
{
    apr_status_t rv;

    agent_lock_take(dispatch->lock);
    wait->serial = ++dispatch->last_serial;
    apr_hash_set(dispatch->by_serial, &wait->serial, sizeof(wait->serial),
                 wait);
    rv = agent_epoll_control(dispatch->epoll_fd, EPOLL_CTL_ADD, wait->client_fd,
                             wait->serial, EPOLLONESHOT);
    agent_lock_release(dispatch->lock);
    return rv;
}

apr_status_t agent_client_dispatch_create_wait(
    agent_client_wait_t **out, agent_client_dispatch_t *dispatch, int client_fd,
    apr_pool_t *pool)
{
    agent_client_wait_t *wait = apr_pcalloc(pool, sizeof(*wait));
    apr_status_t rv;

    wait->dispatch = dispatch;
    wait->client_fd = client_fd;
    wait->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wait->wake_fd < 0) {
        return apr_get_os_error();
    }
    rv = add(dispatch, wait);
    if (rv != APR_SUCCESS) {
        agent_client_dispatch_end_wait(wait);
        return rv;
    }
    *out = wait;
    return APR_SUCCESS;
}

int agent_client_dispatch_descriptor(const agent_client_wait_t *wait)
{
    return wait->wake_fd;
}

void agent_client_dispatch_forget_descriptor(agent_client_wait_t *wait)
{
    agent_lock_take(wait->dispatch->lock);
    wait->wake_fd = -1;
    agent_lock_release(wait->dispatch->lock);
}

static void watch_locked(agent_client_wait_t *wait, agent_client_event_t event)
{
    uint32_t events = event == AGENT_CLIENT_READS ? EPOLLOUT
                                                  : EPOLLIN | EPOLLRDHUP;

    agent_epoll_control(wait->dispatch->epoll_fd, EPOLL_CTL_MOD,
                        wait->client_fd, wait->serial, events | EPOLLONESHOT);
}

void agent_client_dispatch_begin_wait(agent_client_wait_t *wait,
                                      agent_client_event_t event)
{
    agent_client_dispatch_t *dispatch = wait->dispatch;
    eventfd_t count;

    agent_lock_take(dispatch->lock);
    (void)!eventfd_read(wait->wake_fd, &count);
    release_locked(wait);
    if (event == AGENT_CLIENT_TURN) {
        enqueue_locked(dispatch, wait);
    }
    else {
        watch_locked(wait, event);
    }
    dispatch_locked(dispatch);
    agent_lock_release(dispatch->lock);
}

void agent_client_dispatch_release(agent_client_wait_t *wait)
{
    agent_lock_take(wait->dispatch->lock);
    release_locked(wait);
    dispatch_locked(wait->dispatch);
    agent_lock_release(wait->dispatch->lock);
}

static void end_locked(agent_client_wait_t *wait)
{
    agent_client_dispatch_t *dispatch = wait->dispatch;

    apr_hash_set(dispatch->by_serial, &wait->serial, sizeof(wait->serial),
                 NULL);
    epoll_ctl(dispatch->epoll_fd, EPOLL_CTL_DEL, wait->client_fd, NULL);
    release_locked(wait);
    wait->state = STATE_ENDED;
    dispatch_locked(dispatch);
    if (wait->wake_fd >= 0) {
        close(wait->wake_fd);
        wait->wake_fd = -1;
    }
}

void agent_client_dispatch_end_wait(agent_client_wait_t *wait)
{
    agent_lock_take(wait->dispatch->lock);
    if (wait->state != STATE_ENDED) {
        end_locked(wait);
    }
    agent_lock_release(wait->dispatch->lock);
}

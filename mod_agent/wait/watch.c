/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that sees clients leave and knows what is due: heartbeats, looks
 * while nothing can be heard, the end of the child's grace. It never touches
 * a connection, it only wakes who owns it.
 */
#include "state.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dispatch.h"

/* In the place of a waiter's serial number. */
#define END_SERIAL   0
#define NUDGE_SERIAL 1
#define EVENTS       64

/* Every so many signs of life it is seen whether anything has changed that was
 * not told of: together with others, or by a look of the waiter's own. */
#define BEATS_PER_REVIEW 6
/* Heartbeats of clients that came together are spread: in each slice of time
 * twice as many as would be due if they were even. */
#define SLICE        apr_time_from_msec(10)
#define LEAST_BEATS  8
#define ASK_INTERVAL apr_time_from_sec(1)

static apr_status_t watch_fd(const agent_waits_t *waits, int operation, int fd,
                             apr_uint64_t serial, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = serial};

    return epoll_ctl(waits->epoll_fd, operation, fd, &event) == 0
        ? APR_SUCCESS
        : apr_get_os_error();
}

apr_status_t agent_wait_open_watch(agent_waits_t *waits)
{
    apr_status_t rv;

    waits->last_serial = NUDGE_SERIAL;
    waits->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    waits->nudge_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (waits->epoll_fd < 0 || waits->nudge_fd < 0) {
        return apr_get_os_error();
    }
    rv = watch_fd(waits, EPOLL_CTL_ADD, waits->end_fds[0], END_SERIAL, EPOLLIN);
    return rv != APR_SUCCESS ? rv
                             : watch_fd(waits, EPOLL_CTL_ADD, waits->nudge_fd,
                                        NUDGE_SERIAL, EPOLLIN);
}

/* A client that has shut down its side is taken for gone, as any proxy does.
 * It is told once: the socket stays as it is until the waiter leaves. */
apr_status_t agent_wait_watch_client(agent_waits_t *waits,
                                     const agent_waiter_t *waiter)
{
    return watch_fd(waits, EPOLL_CTL_ADD, waiter->entry.client_fd,
                    waiter->serial, EPOLLRDHUP | EPOLLONESHOT);
}

void agent_wait_watch_again(const agent_waits_t *waits,
                            const agent_waiter_t *waiter, bool reads)
{
    watch_fd(waits, EPOLL_CTL_MOD, waiter->entry.client_fd, waiter->serial,
             (reads ? EPOLLIN : 0) | EPOLLRDHUP | EPOLLONESHOT);
}

void agent_wait_forget_client(agent_waits_t *waits,
                              const agent_waiter_t *waiter)
{
    epoll_ctl(waits->epoll_fd, EPOLL_CTL_DEL, waiter->entry.client_fd, NULL);
}

void agent_wait_nudge(const agent_waits_t *waits)
{
    (void)!eventfd_write(waits->nudge_fd, 1);
}

/* The child's end is the watch thread's to find out. */
static bool has_to_ask(const agent_waits_t *waits)
{
    return waits->is_ending != NULL && !waits->stopping;
}

/* When something is due; 0 = nothing is. */
static apr_time_t find_due_locked(const agent_waits_t *waits)
{
    apr_time_t due = 0;

    if (!APR_RING_EMPTY(&waits->by_heartbeat, agent_waiter_t, link)) {
        due = APR_RING_FIRST(&waits->by_heartbeat)->heartbeat_at;
        due = due > waits->beats_at ? due : waits->beats_at;
    }
    if (!waits->hearing && due != 0 && waits->look_at < due) {
        due = waits->look_at;
    }
    if (has_to_ask(waits) && due != 0 && waits->ask_at < due) {
        due = waits->ask_at;
    }
    if (waits->stopping && !waits->stopped
        && (due == 0 || waits->stop_at < due)) {
        due = waits->stop_at;
    }
    return due;
}

/* For epoll: milliseconds rounded up, -1 = for ever. */
static int find_sleep_ms(agent_waits_t *waits)
{
    apr_time_t due;
    apr_interval_time_t left;

    apr_thread_mutex_lock(waits->mutex);
    due = find_due_locked(waits);
    apr_thread_mutex_unlock(waits->mutex);
    if (due == 0) {
        return -1;
    }
    left = due - apr_time_now();
    return left > 0 ? (int)((left + 999) / 1000) : 0;
}

static bool is_due(const agent_waits_t *waits, const agent_waiter_t *waiter,
                   apr_time_t now)
{
    /* A clock that was set back must not silence anybody. */
    return waiter->heartbeat_at <= now
        || waiter->heartbeat_at > now + 2 * waits->heartbeat;
}

static bool has_to_look_locked(agent_waiter_t *waiter)
{
    return ++waiter->beats % BEATS_PER_REVIEW == 0
        && !(waiter->waits->hearing && agent_wait_want_review_locked(waiter));
}

/* All waiters wait for one interval, so whoever was served goes to the end. */
static void send_heartbeat_locked(agent_waits_t *waits, agent_waiter_t *waiter,
                                  apr_time_t now)
{
    APR_RING_REMOVE(waiter, link);
    waiter->heartbeat_at = now + waits->heartbeat;
    APR_RING_INSERT_TAIL(&waits->by_heartbeat, waiter, agent_waiter_t, link);
    agent_wait_wake_locked(waiter,
                           has_to_look_locked(waiter) ? AGENT_WAIT_HEARTBEAT
                                                      : AGENT_WAIT_SIGN);
}

/* How many may be sent in the slice that begins. */
static int find_share_locked(const agent_waits_t *waits)
{
    int share = (int)(2 * waits->count * SLICE / waits->heartbeat);

    return share > LEAST_BEATS ? share : LEAST_BEATS;
}

static void send_heartbeats_locked(agent_waits_t *waits, apr_time_t now)
{
    int left;

    if (APR_RING_EMPTY(&waits->by_heartbeat, agent_waiter_t, link)
        || (now < waits->beats_at && waits->beats_at <= now + SLICE)) {
        return;
    }
    left = find_share_locked(waits);
    while (!APR_RING_EMPTY(&waits->by_heartbeat, agent_waiter_t, link)
           && is_due(waits, APR_RING_FIRST(&waits->by_heartbeat), now)) {
        if (left-- == 0) {
            waits->beats_at = now + SLICE;
            return;
        }
        send_heartbeat_locked(waits, APR_RING_FIRST(&waits->by_heartbeat), now);
    }
}

static void do_what_is_due_locked(agent_waits_t *waits, apr_time_t now)
{
    send_heartbeats_locked(waits, now);
    if (!waits->hearing && waits->look_at <= now) {
        waits->look_at = now + AGENT_WAIT_DEAF_INTERVAL;
        agent_wait_wake_all_locked(waits, AGENT_WAIT_WOKEN);
    }
    if (has_to_ask(waits) && waits->ask_at <= now) {
        waits->ask_at = now + ASK_INTERVAL;
        if (waits->is_ending()) {
            agent_wait_stop_locked(waits, waits->grace);
        }
    }
    if (waits->stopping && !waits->stopped && waits->stop_at <= now) {
        waits->stopped = true;
        agent_wait_wake_all_locked(waits, AGENT_WAIT_STOPPING);
    }
}

/* False when the thread must end. */
static bool handle_event_locked(agent_waits_t *waits,
                                const struct epoll_event *event)
{
    apr_uint64_t serial = event->data.u64;
    agent_waiter_t *waiter;
    eventfd_t count;

    if (serial == NUDGE_SERIAL) {
        (void)!eventfd_read(waits->nudge_fd, &count);
    }
    else if (serial != END_SERIAL) {
        waiter = apr_hash_get(waits->by_serial, &serial, sizeof(serial));
        if (waiter != NULL) {
            agent_wait_wake_locked(waiter,
                                   event->events == EPOLLIN ? AGENT_WAIT_INPUT
                                                            : AGENT_WAIT_GONE);
        }
    }
    return serial != END_SERIAL;
}

void *APR_THREAD_FUNC agent_wait_watch(apr_thread_t *thread, void *data)
{
    agent_waits_t *waits = data;
    bool goes_on = true;

    while (goes_on) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(waits->epoll_fd, events, EVENTS,
                               find_sleep_ms(waits));

        apr_thread_mutex_lock(waits->mutex);
        for (int i = 0; i < count; i++) {
            goes_on = handle_event_locked(waits, &events[i]) && goes_on;
        }
        do_what_is_due_locked(waits, apr_time_now());
        apr_thread_mutex_unlock(waits->mutex);
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The watch thread: an epoll set of clients, and the timer. It never touches a
 * connection; it wakes the waiter. */
#include "watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dispatch.h"
#include "epoll.h"
#include "timer.h"
#include "waiter_table.h"

/* Instead of a waiter's serial number. */
#define END_SERIAL       0
#define INTERRUPT_SERIAL 1
#define EVENTS           64

apr_status_t agent_watch_open(agent_waiter_registry_t *registry)
{
    apr_status_t rv;

    registry->table.last_serial = INTERRUPT_SERIAL;
    registry->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    registry->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (registry->epoll_fd < 0 || registry->interrupt_fd < 0) {
        return apr_get_os_error();
    }
    rv = agent_epoll_control(registry->epoll_fd, EPOLL_CTL_ADD,
                             registry->end_fds[0], END_SERIAL, EPOLLIN);
    return rv != APR_SUCCESS
        ? rv
        : agent_epoll_control(registry->epoll_fd, EPOLL_CTL_ADD,
                              registry->interrupt_fd, INTERRUPT_SERIAL,
                              EPOLLIN);
}

void agent_watch_close(const agent_waiter_registry_t *registry)
{
    close(registry->interrupt_fd);
    close(registry->epoll_fd);
}

/* One event only (EPOLLONESHOT), because a socket whose client has shut down
 * its sending side would be reported for as long as it is open. */
apr_status_t agent_watch_add(const agent_waiter_registry_t *registry,
                             const agent_waiter_t *waiter)
{
    return agent_epoll_control(registry->epoll_fd, EPOLL_CTL_ADD,
                               waiter->params.client_fd, waiter->serial,
                               EPOLLRDHUP | EPOLLONESHOT);
}

void agent_watch_rearm(const agent_waiter_registry_t *registry,
                       const agent_waiter_t *waiter, bool reads)
{
    agent_epoll_control(registry->epoll_fd, EPOLL_CTL_MOD,
                        waiter->params.client_fd, waiter->serial,
                        (reads ? EPOLLIN : 0) | EPOLLRDHUP | EPOLLONESHOT);
}

void agent_watch_remove(const agent_waiter_registry_t *registry,
                        const agent_waiter_t *waiter)
{
    epoll_ctl(registry->epoll_fd, EPOLL_CTL_DEL, waiter->params.client_fd,
              NULL);
}

void agent_watch_interrupt(const agent_waiter_registry_t *registry)
{
    (void)!eventfd_write(registry->interrupt_fd, 1);
}

/* For epoll_wait(): rounded up; -1 = no limit. */
static int compute_timeout_ms(agent_waiter_registry_t *registry)
{
    apr_time_t due;
    apr_interval_time_t left;

    agent_lock_take(registry->lock);
    due = agent_timer_due_locked(registry);
    agent_lock_release(registry->lock);
    if (due == 0) {
        return -1;
    }
    left = due - apr_time_now();
    return left > 0 ? (int)((left + 999) / 1000) : 0;
}

/* A half-closed socket would be reported again at once, so only resets, which
 * epoll reports without a flag, are watched from now on. */
static agent_wake_reason_t read_event(const agent_waiter_registry_t *registry,
                                      const agent_waiter_t *waiter,
                                      uint32_t events)
{
    if (events == EPOLLIN) {
        return AGENT_REASON_INPUT;
    }
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
        return AGENT_REASON_CLIENT_GONE;
    }
    agent_epoll_control(registry->epoll_fd, EPOLL_CTL_MOD,
                        waiter->params.client_fd, waiter->serial, EPOLLONESHOT);
    return AGENT_REASON_HALF_CLOSED;
}

/* False when the thread must end. */
static bool handle_event_locked(const agent_waiter_registry_t *registry,
                                const struct epoll_event *event)
{
    apr_uint64_t serial = event->data.u64;
    agent_waiter_t *waiter;
    eventfd_t count;

    if (serial == END_SERIAL) {
        return false;
    }
    if (serial == INTERRUPT_SERIAL) {
        (void)!eventfd_read(registry->interrupt_fd, &count);
        return true;
    }
    waiter = agent_waiter_table_find_serial_locked(&registry->table, serial);
    if (waiter != NULL) {
        agent_dispatch_wake_locked(waiter,
                                   read_event(registry, waiter, event->events));
    }
    return true;
}

void *APR_THREAD_FUNC agent_watch_run(apr_thread_t *thread, void *data)
{
    agent_waiter_registry_t *registry = data;
    bool continues = true;

    while (continues) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(registry->epoll_fd, events, EVENTS,
                               compute_timeout_ms(registry));

        agent_lock_take(registry->lock);
        for (int i = 0; i < count; i++) {
            continues = handle_event_locked(registry, &events[i]) && continues;
        }
        agent_timer_run_locked(registry, apr_time_now());
        agent_lock_release(registry->lock);
    }
    return NULL;
}

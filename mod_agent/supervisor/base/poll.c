/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors that the loop waits for; see poll.h. */
#include "poll.h"

#include <errno.h>
#include <unistd.h>

#include "context.h"
#include "order.h"

/* An iteration begins at least this often. */
#define LONGEST_WAIT apr_time_from_sec(10)
/* Descriptors handled in one iteration; the kernel takes turns among more. */
#define MAX_READY 128

void agent_poll_init(agent_poll_t *set, agent_context_t *context)
{
    set->context = context;
    set->fd = -1;
}

bool agent_poll_open(agent_poll_t *set)
{
    set->fd = epoll_create1(EPOLL_CLOEXEC);
    return set->fd >= 0;
}

void agent_poll_close(agent_poll_t *set)
{
    if (set->fd >= 0) {
        close(set->fd);
        set->fd = -1;
    }
}

void agent_poll_replace(agent_poll_watch_t *watch, int fd)
{
    watch->fd = fd;
    watch->is_added = false;
    watch->events = 0;
}

void agent_poll_close_watch(agent_poll_watch_t *watch)
{
    if (watch->fd >= 0) {
        close(watch->fd);
        agent_poll_replace(watch, -1);
    }
}

static apr_status_t control(const agent_poll_t *set, agent_poll_watch_t *watch,
                            uint32_t events)
{
    /* Without events, the end of the other side would be reported all the
     * time: an edge is reported once, and then not handled. */
    struct epoll_event event = {.events = events != 0 ? events : EPOLLET,
                                .data.ptr = watch};
    int rc = epoll_ctl(set->fd, watch->is_added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                       watch->fd, &event);

    if (rc != 0 && errno == EEXIST) {
        /* A descriptor that was not replaced is in the set. */
        rc = epoll_ctl(set->fd, EPOLL_CTL_MOD, watch->fd, &event);
    }
    watch->is_added = rc == 0;
    watch->events = rc == 0 ? events : 0;
    return rc == 0 ? APR_SUCCESS : APR_FROM_OS_ERROR(errno);
}

apr_status_t agent_poll_add(agent_poll_t *set, agent_poll_watch_t *watch)
{
    return watch->fd < 0 || watch->is_added ? APR_SUCCESS
                                            : control(set, watch, 0);
}

apr_status_t agent_poll_set(agent_poll_t *set, agent_poll_watch_t *watch,
                            uint32_t events)
{
    return watch->fd < 0 || events == watch->events
        ? APR_SUCCESS
        : control(set, watch, events);
}

void agent_poll_remove(agent_poll_t *set, agent_poll_watch_t *watch)
{
    struct epoll_event event = {0};

    if (watch->is_added) {
        /* It fails if the descriptor was closed already. */
        epoll_ctl(set->fd, EPOLL_CTL_DEL, watch->fd, &event);
    }
    agent_poll_replace(watch, -1);
}

/* Milliseconds, rounded up: a wait cut short would be a busy loop. */
static int count_ms(apr_time_t until, apr_time_t now)
{
    apr_interval_time_t wait = AGENT_MIN(until - now, LONGEST_WAIT);

    return wait > 0 ? (int)((wait + 999) / 1000) : 0;
}

void agent_poll_wait(agent_poll_t *set, apr_time_t until)
{
    struct epoll_event ready[MAX_READY];
    int count = epoll_wait(set->fd, ready, MAX_READY,
                           count_ms(until, set->context->now));

    set->context->now = agent_clock_now();
    for (int i = 0; i < count; i++) {
        const agent_poll_watch_t *watch = ready[i].data.ptr;

        if (watch->events != 0) {
            watch->handler(watch->part, watch->item);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors that the loop waits for; see poll.h. */
#include "poll.h"

#include <errno.h>
#include <unistd.h>

#include "context.h"

/* An iteration begins at least this often. */
#define LONGEST_WAIT apr_time_from_sec(10)
/* Descriptors handled in one iteration; the kernel takes turns among more. */
#define MAX_READY 128

void agent_poll_init(agent_poll_t *set, agent_context_t *context)
{
    set->context = context;
    set->fd = -1;
    set->error = APR_SUCCESS;
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
    watch->events = 0;
}

void agent_poll_close_watch(agent_poll_watch_t *watch)
{
    if (watch->fd >= 0) {
        close(watch->fd);
        agent_poll_replace(watch, -1);
    }
}

/* Returns false and sets errno if the kernel refuses the change. */
static bool control(const agent_poll_t *set, agent_poll_watch_t *watch,
                    uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    if (watch->events == 0) {
        /* One that was not replaced after all is in the set. */
        return epoll_ctl(set->fd, EPOLL_CTL_ADD, watch->fd, &event) == 0
            || (errno == EEXIST
                && epoll_ctl(set->fd, EPOLL_CTL_MOD, watch->fd, &event) == 0);
    }
    if (events == 0) {
        /* It fails if the descriptor was closed already. */
        epoll_ctl(set->fd, EPOLL_CTL_DEL, watch->fd, &event);
        return true;
    }
    return epoll_ctl(set->fd, EPOLL_CTL_MOD, watch->fd, &event) == 0;
}

void agent_poll_set(agent_poll_t *set, agent_poll_watch_t *watch,
                    uint32_t events)
{
    if (watch->fd < 0 || events == watch->events) {
        return;
    }
    if (!control(set, watch, events)) {
        set->error = APR_FROM_OS_ERROR(errno);
        return;
    }
    watch->events = events;
}

/* Milliseconds, rounded up: a wait cut short would be a busy loop. */
static int count_ms(apr_time_t until, apr_time_t now)
{
    apr_interval_time_t wait = until - now < LONGEST_WAIT ? until - now
                                                          : LONGEST_WAIT;

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

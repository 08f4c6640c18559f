/* SPDX-License-Identifier: Apache-2.0 */
/* The poll set; see poll.h. */
#include "poll.h"

#include "context.h"

/* An iteration begins at least this often. */
#define LONGEST_WAIT apr_time_from_sec(10)

void agent_poll_init(agent_poll_t *set, agent_context_t *context)
{
    set->context = context;
}

void agent_poll_add(agent_poll_t *set, int fd, short events,
                    agent_poll_handler_t handler, void *part, void *item)
{
    if (fd >= 0 && set->count < AGENT_POLL_MAX) {
        set->fds[set->count] = (struct pollfd){.fd = fd, .events = events};
        set->handlers[set->count] = handler;
        set->parts[set->count] = part;
        set->items[set->count] = item;
        set->count++;
    }
}

void agent_poll_wait(agent_poll_t *set, apr_time_t until)
{
    apr_interval_time_t wait = until - set->context->now;
    int ready;

    if (wait > LONGEST_WAIT || until == AGENT_CLOCK_NEVER) {
        wait = LONGEST_WAIT;
    }
    /* Rounded up: a wait cut short would be a busy loop. */
    ready = poll(set->fds, (nfds_t)set->count,
                 wait > 0 ? (int)((wait + 999) / 1000) : 0);
    set->context->now = agent_clock_now();
    for (int i = 0; i < set->count && ready > 0; i++) {
        if (set->fds[i].revents != 0) {
            ready--;
            set->handlers[i](set->parts[i], set->items[i]);
        }
    }
    set->count = 0;
}

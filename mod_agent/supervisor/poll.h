/* SPDX-License-Identifier: Apache-2.0 */
/* The poll set, which is filled anew before each poll(). */
#ifndef AGENT_SUPERVISOR_POLL_H
#define AGENT_SUPERVISOR_POLL_H

#include <poll.h>

#include "types.h"
#include "webhook/delivery.h"

/* Three for each runner, those of the webhooks, and a few more. */
#define AGENT_POLL_MAX (3 * AGENT_RUNNERS_MAX + AGENT_WEBHOOK_SOCKETS + 16)

/* part, item: as given to agent_poll_add(). */
typedef void (*agent_poll_handler_t)(void *part, void *item);

typedef struct agent_poll_t {
    agent_context_t *context;
    struct pollfd fds[AGENT_POLL_MAX];
    agent_poll_handler_t handlers[AGENT_POLL_MAX];
    void *parts[AGENT_POLL_MAX];
    void *items[AGENT_POLL_MAX];
    int count;
} agent_poll_t;

void agent_poll_init(agent_poll_t *set, agent_context_t *context);

/* Adds fd for the next agent_poll_wait(), which calls the handler when it is
 * ready or has failed. item may be NULL. An fd of -1 is skipped. */
void agent_poll_add(agent_poll_t *set, int fd, short events,
                    agent_poll_handler_t handler, void *part, void *item);

/* Waits until a descriptor is ready, or until that time, 10 s at most; reads
 * the clock, calls the handlers, empties the set. */
void agent_poll_wait(agent_poll_t *set, apr_time_t until);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One poll() at a time: the set is filled anew before each, so nothing can be
 * left in it by mistake.
 */
#ifndef AGENT_SUPERVISOR_POLL_H
#define AGENT_SUPERVISOR_POLL_H

#include <poll.h>

#include "types.h"
#include "webhook/webhook.h"

/* Three for each runner, those of the webhooks, and a handful. */
#define AGENT_POLL_MAX (3 * AGENT_RUNNERS_MAX + AGENT_WEBHOOK_SOCKETS + 16)

typedef void (*agent_poll_handler_t)(agent_supervisor_t *sv, void *baton);

typedef struct agent_poll_t {
    struct pollfd fds[AGENT_POLL_MAX];
    agent_poll_handler_t handlers[AGENT_POLL_MAX];
    void *batons[AGENT_POLL_MAX];
    int count;
} agent_poll_t;

/* The handler is called when fd is ready or has failed. */
void agent_poll_add(agent_supervisor_t *sv, int fd, short events,
                    agent_poll_handler_t handler, void *baton);

/* Waits until something is ready or `until`, calls handlers, empties the set.
 */
void agent_poll_wait(agent_supervisor_t *sv, apr_time_t until);

#endif

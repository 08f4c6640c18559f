/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors that the loop waits for: an epoll set, so that an iteration
 * costs what is ready, not what is waited for.
 *
 * A descriptor leaves the set when it is closed: no other process has it, since
 * all are opened after the spawner was started, the last fork.
 */
#ifndef AGENT_SUPERVISOR_POLL_H
#define AGENT_SUPERVISOR_POLL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "types.h"

/* part, item: as in the watch. */
typedef void (*agent_poll_handler_t)(void *part, void *item);

/* A descriptor that may be waited for; a member of the struct that uses it,
 * which no handler may free. */
typedef struct agent_poll_watch_t {
    int fd; /* -1: none */
    bool is_added;
    /* Waited for: EPOLLIN, EPOLLOUT; 0: none. */
    uint32_t events;
    agent_poll_handler_t handler;
    void *part;
    void *item; /* may be NULL */
} agent_poll_watch_t;

typedef struct agent_poll_t {
    agent_context_t *context;
    int fd; /* -1: not open */
} agent_poll_t;

void agent_poll_init(agent_poll_t *set, agent_context_t *context);

/* Opens and closes the set; false: not possible, errno says why. The loop opens
 * it when all other processes have been forked. */
bool agent_poll_open(agent_poll_t *set);
void agent_poll_close(agent_poll_t *set);

/*
 * Adds the descriptor, if there is one, without events. It stays in the set
 * until it is closed or removed, so that its owner can wait for it again at any
 * time. Errors: of epoll_ctl(). ENOSPC, ENOMEM: the processes of this user
 * watch as many descriptors as fs.epoll.max_user_watches permits, or there is
 * no memory; the caller closes the descriptor, and others are not affected.
 */
apr_status_t agent_poll_add(agent_poll_t *set, agent_poll_watch_t *watch);

/* Sets the events at which the handler is called; it is also called when the
 * descriptor has failed. events 0: never. Adds the descriptor, unless events is
 * 0. Costs nothing when the events are as before. Errors: those of
 * agent_poll_add(); EBADF, ENOENT: another library has closed the descriptor.
 * It is not waited for then. */
apr_status_t agent_poll_set(agent_poll_t *set, agent_poll_watch_t *watch,
                            uint32_t events);

/* Removes the descriptor from the set and the watch; it may stay open. */
void agent_poll_remove(agent_poll_t *set, agent_poll_watch_t *watch);

/* Replaces the descriptor by that which another library has now, or -1. The
 * library may have closed the earlier one, even if the number is equal. */
void agent_poll_replace(agent_poll_watch_t *watch, int fd);

/* Closes the descriptor, if there is one. */
void agent_poll_close_watch(agent_poll_watch_t *watch);

/* Waits until a descriptor is ready, or until `until`, 10 s at most; reads the
 * clock and calls the handlers, but none of a watch that an earlier handler has
 * ended. */
void agent_poll_wait(agent_poll_t *set, apr_time_t until);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One LISTEN connection. Notifications are hints on top of polling: whoever
 * waits looks again after each (re)connection and from time to time.
 */
#ifndef AGENT_DB_LISTEN_H
#define AGENT_DB_LISTEN_H

#include <stdbool.h>

#include "../core/error.h"

typedef struct agent_listener_t agent_listener_t;

typedef struct agent_listener_events_t {
    /* A payload arrived; the text is borrowed until this returns. */
    void (*notified)(void *baton, const char *payload);
    /* All payloads that have arrived were told of. */
    void (*drained)(void *baton);
    /* Listening began, or began again: anything may have been missed. */
    void (*connected)(void *baton);
    /* The connection was lost; cause is borrowed. */
    void (*lost)(void *baton, const char *cause);
    void *baton;
} agent_listener_events_t;

/*
 * Makes a listener on a channel (a lower case identifier); nothing is
 * connected yet. stop_fd: readable = agent_listener_run() returns.
 */
agent_listener_t *agent_listener_create(const char *conninfo,
                                        const char *channel, int stop_fd,
                                        const agent_listener_events_t *events,
                                        apr_pool_t *pool);

/*
 * Connects, listens and calls the events from this thread until stop_fd is
 * readable. Connects again by itself, at most once a second. A connection on
 * which nothing comes for 15 s is probed, so that a half-open one is noticed.
 */
void agent_listener_run(agent_listener_t *listener);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A LISTEN connection. Notifications are hints and may be lost: their receivers
 * poll after each (re)connection and at intervals.
 */
#ifndef AGENT_DB_LISTENER_H
#define AGENT_DB_LISTENER_H

#include <stdbool.h>

#include "../core/error.h"

typedef struct agent_listener_t agent_listener_t;

typedef struct agent_listener_events_t {
    /* A notification was received; payload is borrowed for the call. */
    void (*notified)(void *baton, const char *payload);
    /* All notifications received so far were delivered. */
    void (*drained)(void *baton);
    /* LISTEN succeeded, first or again: notifications may have been lost. */
    void (*connected)(void *baton);
    /* The connection was lost; cause is borrowed. */
    void (*lost)(void *baton, const char *cause);
    void *baton;
} agent_listener_events_t;

/*
 * Makes a listener on a channel (a lower case identifier), not connected yet.
 * agent_listener_run() returns when stop_fd is readable.
 */
agent_listener_t *agent_listener_create(const char *conninfo,
                                        const char *channel, int stop_fd,
                                        const agent_listener_events_t *events,
                                        apr_pool_t *pool);

/*
 * Connects, listens and calls the events in this thread until stop_fd is
 * readable. Reconnects after a loss, at most once a second. After 15 s without
 * data it probes the connection, to detect a half-open one.
 */
void agent_listener_run(agent_listener_t *listener);

#endif

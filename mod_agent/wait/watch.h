/* SPDX-License-Identifier: Apache-2.0 */
/* The watch thread: an epoll set of clients, and the timer. */
#ifndef AGENT_WAIT_WATCH_H
#define AGENT_WAIT_WATCH_H

#include "state.h"

/* Open and close the descriptors of the thread. Errors: those of the system
 * calls. */
apr_status_t agent_watch_open(agent_waiter_registry_t *registry);
void agent_watch_close(const agent_waiter_registry_t *registry);

/* The thread's function; data is the registry. */
void *APR_THREAD_FUNC agent_watch_run(apr_thread_t *thread, void *data);

/* Makes the thread recompute when the next action is due. */
void agent_watch_interrupt(const agent_waiter_registry_t *registry);

/* Watches the client of a waiter until it disconnects. Errors: those of
 * epoll_ctl(). */
apr_status_t agent_watch_add(const agent_waiter_registry_t *registry,
                             const agent_waiter_t *waiter);

/* Watches the client again after INPUT was taken. reads: all its data was read,
 * and more is reported as INPUT; otherwise only a disconnect is reported. */
void agent_watch_rearm(const agent_waiter_registry_t *registry,
                       const agent_waiter_t *waiter, bool reads);

/* Stops watching the client of a waiter. */
void agent_watch_remove(const agent_waiter_registry_t *registry,
                        const agent_waiter_t *waiter);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for runs: one wake thread per child hears which runs changed and
 * wakes the requests that wait for them.
 *
 * A wake-up is a hint. The order that loses none: register, then look at the
 * run, then wait, then look again.
 */
#ifndef AGENT_WAIT_WAIT_H
#define AGENT_WAIT_WAIT_H

#include <apr_time.h>

#include "../core/error.h"
#include "../core/log.h"

typedef struct agent_waits_t agent_waits_t;
typedef struct agent_waiter_t agent_waiter_t;

typedef enum agent_wait_t {
    /* The run may have changed: look. */
    AGENT_WAIT_WOKEN,
    /* Time to show the client a sign of life, and to look. */
    AGENT_WAIT_TIMEOUT,
    /* This child ends: give the client a reason to come again. */
    AGENT_WAIT_STOPPING
} agent_wait_t;

/*
 * Starts the wake thread; it ends when pool does. max: how many requests may
 * wait at once. conninfo: libpq's, for the LISTEN connection.
 */
apr_status_t agent_waits_create(agent_waits_t **out, const char *conninfo,
                                int max, const agent_log_t *log,
                                apr_pool_t *pool);

/*
 * This child ends: no new waiters, and whoever still waits after grace is
 * answered AGENT_WAIT_STOPPING.
 */
void agent_waits_stop(agent_waits_t *waits, apr_interval_time_t grace);

/*
 * Registers a waiter for a run (lower case UUID, borrowed until it leaves); in
 * pool. Errors: OVERLOADED when max are waiting, SHUTTING_DOWN.
 */
apr_status_t agent_wait_enter(agent_waiter_t **out, agent_waits_t *waits,
                              const char *run_id, agent_error_t **err,
                              apr_pool_t *pool);

/*
 * Blocks until the run may have changed since the last call (or since
 * entering), or for the time given. While nothing can be heard it returns
 * after a second at the most, so that waiting becomes polling.
 */
agent_wait_t agent_wait_for(agent_waiter_t *waiter,
                            apr_interval_time_t timeout);

/* Must be called once for each waiter, from the thread that entered. */
void agent_wait_leave(agent_waiter_t *waiter);

#endif

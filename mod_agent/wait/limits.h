/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a child's waiter registry. */
#ifndef AGENT_WAIT_LIMITS_H
#define AGENT_WAIT_LIMITS_H

#include <stdbool.h>

#include <apr_time.h>

/* How many threads parked waiters may use for their turns: always `least`, and
 * up to `most` while more than `reserve` threads are idle. */
typedef struct agent_waiter_threads_t {
    int least;
    int most;
    int reserve;
    /* Number of idle threads; called with the registry's lock held. */
    int (*count_idle)(void *baton);
    void *baton;
} agent_waiter_threads_t;

/* The limits of the account of a request (AgentLimit), on what it has in a
 * child; -1: none. */
typedef struct agent_waiter_account_t {
    /* NULL: an account without limits, which is not counted. Borrowed. */
    const char *id;
    /* Waiters that are not streams, and those that are. */
    apr_int64_t waiting;
    apr_int64_t streams;
} agent_waiter_account_t;

typedef struct agent_waiter_limits_t {
    /* Waiters without a thread, and waiters that block one; half of each is
     * guaranteed to the deployments, in equal parts. */
    int parked;
    int blocked;
    int deployments;
    /* Waiters of one client address; 0 = unlimited. */
    int parked_per_address;
    int blocked_per_address;
    agent_waiter_threads_t threads;
    /* Interval between two heartbeats of a waiter. */
    apr_interval_time_t heartbeat;
    /* For an MPM that calls child_stopping too late (prefork): polled every
     * second; true stops the registry with `grace`. NULL = not needed. */
    bool (*is_ending)(void);
    apr_interval_time_t grace;
} agent_waiter_limits_t;

#endif

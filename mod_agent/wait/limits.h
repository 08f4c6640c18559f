/* SPDX-License-Identifier: Apache-2.0 */
/* What the waiting requests of a child may cost it; see wait.h. */
#ifndef AGENT_WAIT_LIMITS_H
#define AGENT_WAIT_LIMITS_H

#include <stdbool.h>

#include <apr_time.h>

/*
 * The threads of a child that parked waiters may take turns on: least, whatever
 * else the child does; up to most, while more than reserve are idle.
 */
typedef struct agent_wait_threads_t {
    int least;
    int most;
    int reserve;
    /* Called with the lock of the waits held. */
    int (*count_idle)(void *baton);
    void *baton;
} agent_wait_threads_t;

/* What a child's waiting may cost. */
typedef struct agent_waits_limits_t {
    /* Requests without a thread, and requests that each hold one. */
    int parked;
    int blocked;
    /* Those of one client address; 0 = any number. */
    int parked_per_address;
    int blocked_per_address;
    agent_wait_threads_t threads;
    /* Between two signs of life of one request. */
    apr_interval_time_t heartbeat;
    /* For an MPM that announces the end of a child too late (prefork): polled
     * each second; when it returns true, the waiters are stopped as by
     * agent_waits_stop() with this grace. NULL = it is not needed. */
    bool (*is_ending)(void);
    apr_interval_time_t grace;
} agent_waits_limits_t;

#endif

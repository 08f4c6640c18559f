/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn of a request that waits: it queries, writes what is new and returns.
 * Between turns the request is parked (park.h), or a thread blocks for it.
 */
#ifndef AGENT_WAIT_TURN_H
#define AGENT_WAIT_TURN_H

#include <httpd.h>

#include "waiter.h"

typedef enum agent_turn_t {
    /* Take the next turn when the waiter is woken. */
    AGENT_TURN_WAIT,
    /* Take the next turn as soon as the output is sent. */
    AGENT_TURN_MORE,
    /* The response is complete. */
    AGENT_TURN_DONE
} agent_turn_t;

/*
 * One turn, which should write at most 64 KB. reason is never NONE; there is no
 * turn after CLIENT_GONE, KEY_INVALID or STOPPING. After HALF_CLOSED, waiters
 * for a change end; responses being sent continue. scratch is destroyed when it
 * returns.
 */
typedef agent_turn_t (*agent_turn_fn_t)(void *baton, agent_wake_reason_t reason,
                                        agent_waiter_t *waiter,
                                        apr_pool_t *scratch);

/* A request that is to wait. */
typedef struct agent_parking_t {
    agent_waiter_registry_t *registry;
    /* Id of a run or thread, in the request's pool. */
    const char *key;
    /* As in agent_waiter_params_t. */
    const char *deployment_id;
    agent_waiter_account_t account;
    /* In the request's pool; as in agent_waiter_params_t. */
    const agent_identity_t *identity;
    bool is_stream;
    bool has_end;
    apr_interval_time_t timeout;
    agent_turn_fn_t take_turn;
    /* In the request's pool. */
    void *baton;
} agent_parking_t;

/* Returns when to repeat a query that failed with err: MORE, at once, after
 * POOL_EXHAUSTED, since it has waited for a connection; else WAIT. */
agent_turn_t agent_turn_after_error(const agent_error_t *err);

/* Takes one turn. */
agent_turn_t agent_turn_take(const agent_parking_t *parking,
                             agent_waiter_t *waiter,
                             agent_wake_reason_t reason);

/* Takes turns until one is DONE, the first at once with QUERY, and unregisters
 * the waiter. The thread blocks between turns. */
void agent_turn_run_blocking(const agent_parking_t *parking,
                             agent_waiter_t *waiter, conn_rec *c);

#endif

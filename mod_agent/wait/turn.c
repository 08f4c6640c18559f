/* SPDX-License-Identifier: Apache-2.0 */
/* Turns, and the loop of a thread that blocks between them. */
#include "turn.h"

#include "input.h"

/* mod_http2 sets c->aborted when a stream is reset or its client disconnects,
 * and signals nothing: the flag is polled. */
#define ABORTED_INTERVAL_MS 100

agent_turn_t agent_turn_after_error(const agent_error_t *err)
{
    return err->id == AGENT_E_POOL_EXHAUSTED ? AGENT_TURN_MORE
                                             : AGENT_TURN_WAIT;
}

agent_turn_t agent_turn_take(const agent_parking_t *parking,
                             agent_waiter_t *waiter, agent_wake_reason_t reason)
{
    /* A pool of its own: the request's would grow while it waits. */
    apr_pool_t *scratch = agent_waiter_registry_make_pool(parking->registry);
    agent_turn_t turn = parking->take_turn(parking->baton, reason, waiter,
                                           scratch);

    apr_pool_destroy(scratch);
    agent_waiter_end_turn(waiter);
    return reason == AGENT_REASON_CLIENT_GONE
            || reason == AGENT_REASON_KEY_INVALID
            || reason == AGENT_REASON_STOPPING
        ? AGENT_TURN_DONE
        : turn;
}

/* Replaces INPUT: the client has disconnected, or there is no reason. */
static agent_wake_reason_t resolve_input(agent_wake_reason_t reason,
                                         conn_rec *c,
                                         agent_waiter_registry_t *registry,
                                         const agent_waiter_t *waiter)
{
    if (reason != AGENT_REASON_INPUT) {
        return reason;
    }
    return agent_input_is_closed(c, registry, waiter) ? AGENT_REASON_CLIENT_GONE
                                                      : AGENT_REASON_NONE;
}

/* The reason for the turn after one that left output: one with a query, unless
 * the client, the key or the child has ended. */
static agent_wake_reason_t take_query_reason(const agent_parking_t *parking,
                                             agent_waiter_t *waiter,
                                             conn_rec *c)
{
    agent_wake_reason_t reason = resolve_input(agent_waiter_take_reason(waiter),
                                               c, parking->registry, waiter);

    if (reason == AGENT_REASON_HEARTBEAT) {
        return AGENT_REASON_HEARTBEAT_QUERY;
    }
    return reason < AGENT_REASON_QUERY ? reason : AGENT_REASON_QUERY;
}

static agent_wake_reason_t block(const agent_parking_t *parking,
                                 agent_waiter_t *waiter, conn_rec *c)
{
    int timeout_ms = c->master != NULL ? ABORTED_INTERVAL_MS : -1;
    agent_wake_reason_t reason;

    do {
        reason = resolve_input(agent_waiter_block(waiter, timeout_ms), c,
                               parking->registry, waiter);
    } while (reason == AGENT_REASON_NONE && !c->aborted);
    return reason;
}

void agent_turn_run_blocking(const agent_parking_t *parking,
                             agent_waiter_t *waiter, conn_rec *c)
{
    agent_turn_t turn = agent_turn_take(parking, waiter, AGENT_REASON_QUERY);

    while (turn != AGENT_TURN_DONE) {
        agent_wake_reason_t reason = turn == AGENT_TURN_MORE
            ? take_query_reason(parking, waiter, c)
            : block(parking, waiter, c);

        turn = agent_turn_take(parking, waiter,
                               c->aborted ? AGENT_REASON_CLIENT_GONE : reason);
    }
    agent_waiter_unregister(waiter);
}

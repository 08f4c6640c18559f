/* SPDX-License-Identifier: Apache-2.0 */
/* Turns, and the thread that blocks between them; see block.h. */
#include "turn.h"

#include "input.h"

/* mod_http2 sets c->aborted when a stream is reset or its client has gone, and
 * wakes nobody: between two looks at it. */
#define ABORTED_INTERVAL_MS 100

agent_turn_t agent_block_take_turn(const agent_parking_t *parking,
                                   agent_waiter_t *waiter, agent_wait_t why)
{
    /* Not the request's: one that is parked must not grow. */
    apr_pool_t *scratch = agent_waits_make_pool(parking->waits);
    agent_turn_t turn = parking->take_turn(parking->baton, why, waiter,
                                           scratch);

    apr_pool_destroy(scratch);
    agent_wait_end_turn(waiter);
    return why <= AGENT_WAIT_STOPPING ? AGENT_TURN_DONE : turn;
}

/* What input means: the client has left, or nothing. */
static agent_wait_t judge(agent_wait_t why, conn_rec *c, agent_waits_t *waits,
                          const agent_waiter_t *waiter)
{
    if (why != AGENT_WAIT_INPUT) {
        return why;
    }
    return agent_input_has_left(c, waits, waiter) ? AGENT_WAIT_GONE
                                                  : AGENT_WAIT_NOTHING;
}

/* The reason for another turn when the last one left more to do. That turn must
 * look, which AGENT_WAIT_SIGN alone would not make it do. */
static agent_wait_t take_reason_to_look(const agent_parking_t *parking,
                                        agent_waiter_t *waiter, conn_rec *c)
{
    agent_wait_t why = judge(agent_wait_take(waiter), c, parking->waits,
                             waiter);

    if (why == AGENT_WAIT_SIGN) {
        return AGENT_WAIT_HEARTBEAT;
    }
    return why < AGENT_WAIT_WOKEN ? why : AGENT_WAIT_WOKEN;
}

static agent_wait_t block(const agent_parking_t *parking,
                          agent_waiter_t *waiter, conn_rec *c)
{
    int timeout_ms = c->master != NULL ? ABORTED_INTERVAL_MS : -1;
    agent_wait_t why;

    do {
        why = judge(agent_wait_block(waiter, timeout_ms), c, parking->waits,
                    waiter);
    } while (why == AGENT_WAIT_NOTHING && !c->aborted);
    return why;
}

void agent_block_run(const agent_parking_t *parking, agent_waiter_t *waiter,
                     conn_rec *c)
{
    agent_turn_t turn = agent_block_take_turn(parking, waiter,
                                              AGENT_WAIT_WOKEN);

    while (turn != AGENT_TURN_DONE) {
        agent_wait_t why = turn == AGENT_TURN_MORE
            ? take_reason_to_look(parking, waiter, c)
            : block(parking, waiter, c);

        turn = agent_block_take_turn(parking, waiter,
                                     c->aborted ? AGENT_WAIT_GONE : why);
    }
    agent_wait_leave(waiter);
}

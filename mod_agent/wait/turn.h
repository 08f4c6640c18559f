/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns of a request that waits, and a thread that blocks between them; the
 * requests that do not block are in park.h.
 */
#ifndef AGENT_WAIT_TURN_H
#define AGENT_WAIT_TURN_H

#include <httpd.h>

#include "waiter.h"

typedef enum agent_turn_t {
    /* Again when the waiter is woken. */
    AGENT_TURN_WAIT,
    /* Again as soon as what was written is sent. */
    AGENT_TURN_MORE,
    /* The response is complete. */
    AGENT_TURN_DONE
} agent_turn_t;

/*
 * One turn: at most some 64 KB written. why is never NOTHING; after GONE and
 * STOPPING there is no other turn. scratch lives until it returns.
 */
typedef agent_turn_t (*agent_turn_fn_t)(void *baton, agent_wait_t why,
                                        agent_waiter_t *waiter,
                                        apr_pool_t *scratch);

typedef struct agent_parking_t {
    agent_waits_t *waits;
    /* Id of a run or of a thread, in the request's pool. */
    const char *key;
    const char *account_id;
    bool is_stream;
    agent_turn_fn_t take_turn;
    /* In the request's pool. */
    void *baton;
} agent_parking_t;

/* One turn. */
agent_turn_t agent_block_take_turn(const agent_parking_t *parking,
                                   agent_waiter_t *waiter, agent_wait_t why);

/* Takes turns, the first (with WOKEN) at once, until one is done; then the
 * waiter has left. */
void agent_block_run(const agent_parking_t *parking, agent_waiter_t *waiter,
                     conn_rec *c);

#endif

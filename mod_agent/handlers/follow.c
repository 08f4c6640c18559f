/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event streams; see follow.h.
 *
 * A clean end means "the run has ended" to an SDK; any other end must be seen
 * as a cut, after which it comes again.
 */
#include "follow.h"

#include "../http/body.h"
#include "../http/problem.h"
#include "../http/response.h"
#include "../http/stream.h"
#include "../wait/park.h"
#include "abandon.h"

apr_status_t agent_follow_begin(agent_follow_t *follow)
{
    if (follow->begun) {
        return APR_SUCCESS;
    }
    follow->begun = true;
    return agent_stream_begin(follow->call);
}

/* What was rolled back or deleted has ended by not being there, unless a part
 * of it is missing. */
static bool is_end(const agent_follow_t *follow)
{
    const agent_call_t *call = follow->call;

    return !follow->has_more
        && (call->err->id == AGENT_E_RUN_NOT_FOUND
            || call->err->id == AGENT_E_THREAD_NOT_FOUND);
}

static agent_turn_t fail(const agent_follow_t *follow)
{
    agent_call_t *call = follow->call;

    if (!follow->begun) {
        agent_problem_send(call);
    }
    else if (!is_end(follow)) {
        agent_problem_log(call);
        agent_response_abort(call);
    }
    return AGENT_TURN_DONE;
}

/* After a look that failed. */
static agent_turn_t try_again(const agent_follow_t *follow)
{
    const agent_call_t *call = follow->call;

    if (!follow->begun
        || agent_error_http(call->err->id) != HTTP_SERVICE_UNAVAILABLE) {
        return fail(follow);
    }
    /* The pool was already waited for; the database will come back, and the
     * stream goes on where it was. */
    return call->err->id == AGENT_E_POOL_EXHAUSTED ? AGENT_TURN_MORE
                                                   : AGENT_TURN_WAIT;
}

static agent_turn_t give_up(const agent_follow_t *follow, apr_pool_t *scratch)
{
    if (follow->cancels) {
        agent_abandon_run(follow->call, scratch);
    }
    agent_response_abort(follow->call);
    return AGENT_TURN_DONE;
}

/* What was brought, or else what a look finds. */
static apr_status_t send_all(agent_follow_t *follow, agent_wait_t why,
                             agent_waiter_t *waiter, apr_pool_t *scratch)
{
    apr_status_t rv = APR_INCOMPLETE;

    if (why == AGENT_WAIT_NEWS) {
        rv = follow->send_news(follow, agent_wait_news(waiter), scratch);
    }
    if (rv != APR_INCOMPLETE) {
        return rv;
    }
    rv = follow->send(follow, scratch);
    if (rv == APR_SUCCESS || rv == APR_EAGAIN) {
        follow->has_more = rv == APR_SUCCESS;
    }
    if (rv == APR_EAGAIN && follow->send_news != NULL) {
        agent_wait_bring_news(waiter, follow->get_cursor(follow));
    }
    return rv;
}

static apr_status_t send_or_beat(agent_follow_t *follow, agent_wait_t why,
                                 agent_waiter_t *waiter, apr_pool_t *scratch)
{
    apr_status_t rv = why == AGENT_WAIT_SIGN
        ? APR_EAGAIN
        : send_all(follow, why, waiter, scratch);

    if (rv != APR_EAGAIN
        || (why != AGENT_WAIT_HEARTBEAT && why != AGENT_WAIT_SIGN)) {
        return rv;
    }
    /* One line end: after a second one the JavaScript SDK sees an event without
     * a name. */
    return agent_response_write(follow->call, ": heartbeat\n") == APR_SUCCESS
        ? APR_EAGAIN
        : APR_ECONNABORTED;
}

/* HEAD asks for the headers alone, which are sent by then. */
static agent_turn_t go_on(const agent_follow_t *follow, agent_turn_t turn)
{
    return follow->call->r->header_only ? AGENT_TURN_DONE : turn;
}

static agent_turn_t take_turn(void *baton, agent_wait_t why,
                              agent_waiter_t *waiter, apr_pool_t *scratch)
{
    agent_follow_t *follow = baton;

    if (why == AGENT_WAIT_STOPPING) {
        agent_response_abort(follow->call);
        return AGENT_TURN_DONE;
    }
    if (why == AGENT_WAIT_GONE) {
        return give_up(follow, scratch);
    }
    switch (send_or_beat(follow, why, waiter, scratch)) {
    case APR_SUCCESS:
        return go_on(follow, AGENT_TURN_MORE);
    case APR_EAGAIN:
        return go_on(follow, AGENT_TURN_WAIT);
    case APR_EOF:
        return AGENT_TURN_DONE;
    case APR_ECONNABORTED:
        return give_up(follow, scratch);
    default:
        return try_again(follow);
    }
}

int agent_follow(agent_follow_t *follow)
{
    agent_call_t *call = follow->call;
    const agent_parking_t parking = {.waits = call->child->waits,
                                     .key = follow->key,
                                     .account_id = call->account_id,
                                     .is_stream = true,
                                     .take_turn = take_turn,
                                     .baton = follow};
    int result = OK;

    agent_body_release(call);
    if (agent_park(&result, call->r, &parking, &call->err) != APR_SUCCESS) {
        fail(follow);
    }
    return result;
}

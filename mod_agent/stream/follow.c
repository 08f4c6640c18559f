/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of an event stream; see follow.h.
 *
 * SDKs take a clean end of the response for the end of the run, and reconnect
 * after any other: a stream that cannot be completed is aborted.
 */
#include "follow.h"

#include "../http/body.h"
#include "../http/problem.h"
#include "../http/response.h"
#include "../wait/park.h"
#include "disconnect.h"
#include "sse.h"

apr_status_t agent_follow_begin(agent_follow_t *follow)
{
    if (follow->begun) {
        return APR_SUCCESS;
    }
    follow->begun = true;
    return agent_sse_begin(follow->call);
}

/* A run or thread that was rolled back or deleted ends the stream, unless
 * events before that are unsent. */
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

/* After a poll that failed. */
static agent_turn_t retry(const agent_follow_t *follow)
{
    const agent_call_t *call = follow->call;

    if (!follow->begun
        || agent_error_http(call->err->id) != HTTP_SERVICE_UNAVAILABLE) {
        return fail(follow);
    }
    /* The stream resumes at its cursor when the database is available again.
     * POOL_EXHAUSTED comes after a wait of its own. */
    return call->err->id == AGENT_E_POOL_EXHAUSTED ? AGENT_TURN_MORE
                                                   : AGENT_TURN_WAIT;
}

static agent_turn_t give_up(const agent_follow_t *follow, apr_pool_t *scratch)
{
    if (follow->cancels) {
        agent_disconnect_cancel(follow->call, scratch);
    }
    agent_response_abort(follow->call);
    return AGENT_TURN_DONE;
}

/* Sends the updates; polls when there are none or some are missing. */
static apr_status_t send_all(agent_follow_t *follow, agent_wake_reason_t why,
                             agent_waiter_t *waiter, apr_pool_t *scratch)
{
    apr_status_t rv = APR_INCOMPLETE;

    if (why == AGENT_REASON_UPDATES) {
        rv = follow->send_updates(follow, agent_waiter_updates(waiter),
                                  scratch);
    }
    if (rv != APR_INCOMPLETE) {
        return rv;
    }
    rv = follow->poll(follow, scratch);
    if (rv == APR_SUCCESS || rv == APR_EAGAIN) {
        follow->has_more = rv == APR_SUCCESS;
    }
    if (rv == APR_EAGAIN && follow->send_updates != NULL) {
        agent_waiter_subscribe(waiter, follow->get_cursor(follow));
    }
    return rv;
}

static apr_status_t send_or_heartbeat(agent_follow_t *follow,
                                      agent_wake_reason_t why,
                                      agent_waiter_t *waiter,
                                      apr_pool_t *scratch)
{
    apr_status_t rv = why == AGENT_REASON_HEARTBEAT
        ? APR_EAGAIN
        : send_all(follow, why, waiter, scratch);

    if (rv != APR_EAGAIN
        || (why != AGENT_REASON_HEARTBEAT_QUERY
            && why != AGENT_REASON_HEARTBEAT)) {
        return rv;
    }
    /* One line end: with two the JavaScript SDK reads an event without a name.
     */
    return agent_response_write(follow->call, ": heartbeat\n") == APR_SUCCESS
        ? APR_EAGAIN
        : APR_ECONNABORTED;
}

/* HEAD ends with the headers. */
static agent_turn_t go_on(const agent_follow_t *follow, agent_turn_t turn)
{
    return follow->call->r->header_only ? AGENT_TURN_DONE : turn;
}

static agent_turn_t take_turn(void *baton, agent_wake_reason_t why,
                              agent_waiter_t *waiter, apr_pool_t *scratch)
{
    agent_follow_t *follow = baton;

    if (why == AGENT_REASON_STOPPING) {
        agent_response_abort(follow->call);
        return AGENT_TURN_DONE;
    }
    if (why == AGENT_REASON_CLIENT_GONE) {
        return give_up(follow, scratch);
    }
    switch (send_or_heartbeat(follow, why, waiter, scratch)) {
    case APR_SUCCESS:
        return go_on(follow, AGENT_TURN_MORE);
    case APR_EAGAIN:
        return go_on(follow, AGENT_TURN_WAIT);
    case APR_EOF:
        return AGENT_TURN_DONE;
    case APR_ECONNABORTED:
        return give_up(follow, scratch);
    default:
        return retry(follow);
    }
}

int agent_follow(agent_follow_t *follow)
{
    agent_call_t *call = follow->call;
    const agent_parking_t parking = {.registry = call->child->waiters,
                                     .key = follow->key,
                                     .account_id = call->ref.account_id,
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the result of an update of a thread's state; see update.h. */
#include "update.h"

#include <apr_strings.h>

#include "../core/clock.h"
#include "../core/wake.h"
#include "../http/body.h"
#include "../http/problem.h"
#include "../http/requester.h"
#include "../http/response.h"
#include "../model/state.h"
#include "../wait/park.h"
#include "invalid_key.h"

/* The timer of the wait uses the time of day, the end of the call does not:
 * allows for their difference. */
#define CLOCK_DIFFERENCE apr_time_from_msec(50)

typedef struct update_t {
    agent_call_t *call;
    /* When the call is ended (core/clock.h). */
    apr_time_t end_at;
} update_t;

/* Replaces the time-out that agent.end_call reports, which is not the reason
 * when the child stops. */
static apr_status_t explain_stop(agent_call_t *call, apr_status_t rv)
{
    return rv != APR_SUCCESS
            && (call->err->id == AGENT_E_CALL_TIMEOUT
                || call->err->id == AGENT_E_NO_RUNNER)
        ? agent_error_set(&call->err, AGENT_E_SHUTTING_DOWN, NULL, NULL,
                          call->pool)
        : rv;
}

static apr_status_t end_call(const char **body, agent_call_t *call,
                             agent_db_pool_t *db, apr_pool_t *scratch)
{
    apr_status_t rv = agent_state_end(body, db, &call->ref, &call->err,
                                      scratch);

    /* The supervisor stops the runner of a call that was ended. */
    agent_wake_cancel(
        call->child->wake_fd, call->ref.deployment_id,
        apr_pstrcat(scratch, call->ref.thread_id, " ", call->ref.run_id, NULL));
    return rv;
}

/* Returns what the handler returns; in a turn it does not matter. */
static int respond(agent_call_t *call, apr_status_t rv, const char *body)
{
    return rv == APR_SUCCESS
        ? agent_response_json_transient(call, HTTP_OK, body)
        : agent_problem_send(call);
}

static agent_turn_t keep_waiting(const agent_call_t *call, apr_status_t rv)
{
    return APR_STATUS_IS_EAGAIN(rv) ? AGENT_TURN_WAIT
                                    : agent_turn_after_error(call->err);
}

/* The client has disconnected. */
static agent_turn_t leave(agent_call_t *call)
{
    agent_response_abort(call);
    return AGENT_TURN_DONE;
}

/* A failed poll after which the wait continues: the database will be available
 * again, and has the result. */
static bool is_transient(const agent_call_t *call)
{
    return agent_error_http(call->err->id) == HTTP_SERVICE_UNAVAILABLE
        && call->err->id != AGENT_E_CALL_FAILED;
}

/* A half-closed client may still read, so it gets the result if the call has
 * ended: it may have closed its side while it waited for its first turn. */
static agent_turn_t take_turn(void *baton, agent_wake_reason_t reason,
                              agent_waiter_t *waiter, apr_pool_t *scratch)
{
    const update_t *update = baton;
    agent_call_t *call = update->call;
    bool is_over = reason == AGENT_REASON_STOPPING
        || agent_clock_now() + CLOCK_DIFFERENCE >= update->end_at;
    const char *body = NULL;
    apr_status_t rv;

    if (reason == AGENT_REASON_CLIENT_GONE) {
        return leave(call);
    }
    /* The update continues, as a run does. */
    if (reason == AGENT_REASON_KEY_INVALID) {
        return agent_invalid_key_respond(call, false);
    }
    if (!is_over && reason == AGENT_REASON_HEARTBEAT) {
        return AGENT_TURN_WAIT;
    }
    rv = is_over ? end_call(&body, call, call->child->turn_db, scratch)
                 : agent_state_join(&body, call->child->turn_db, &call->ref,
                                    &call->err, scratch);
    if (!is_over
        && (APR_STATUS_IS_EAGAIN(rv)
            || (rv != APR_SUCCESS && is_transient(call)))) {
        return reason == AGENT_REASON_HALF_CLOSED ? leave(call)
                                                  : keep_waiting(call, rv);
    }
    if (reason == AGENT_REASON_STOPPING) {
        rv = explain_stop(call, rv);
    }
    (void)!respond(call, rv, body);
    return AGENT_TURN_DONE;
}

/* For a request that may not wait after all. */
static int end_at_once(agent_call_t *call)
{
    agent_error_t *refusal = call->err;
    const char *body;
    apr_status_t rv = end_call(&body, call, call->db, call->pool);

    if (rv != APR_SUCCESS) {
        call->err = refusal;
    }
    return respond(call, rv, body);
}

int agent_update_await(agent_call_t *call)
{
    update_t *update = apr_pcalloc(call->pool, sizeof(*update));
    apr_interval_time_t timeout = agent_location_call_timeout(call->dir);
    const agent_parking_t parking = {.registry = call->child->waiters,
                                     .key = call->ref.run_id,
                                     .deployment_id = call->ref.deployment_id,
                                     .account = agent_requester_account(call),
                                     .identity = call->identity,
                                     .timeout = timeout,
                                     .take_turn = take_turn,
                                     .baton = update};
    int result;

    update->call = call;
    update->end_at = agent_clock_now() + timeout;
    agent_body_release(call);
    if (agent_park(&result, call->r, &parking, &call->err) != APR_SUCCESS) {
        return end_at_once(call);
    }
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the end of a run, with heartbeats; see await.h. */
#include "await.h"

#include <apr_strings.h>

#include "../http/body.h"
#include "../http/problem.h"
#include "../http/requester.h"
#include "../http/response.h"
#include "../model/run.h"
#include "../wait/park.h"
#include "disconnect.h"
#include "invalid_key.h"
#include "large_values.h"

typedef struct await_t {
    agent_call_t *call;
    /* True: responds with the run's values, after heartbeats. False: responds
     * 204, and sends nothing before. */
    bool sends_values;
    bool cancels;
    /* The headers of a 200 are sent: an error goes into the body. */
    bool begun;
    /* Large values of a run that has ended; NULL before that. */
    agent_large_values_t *values;
} await_t;

/* True for a failed poll after which the wait continues: the response has
 * begun, and the database will be available again. */
static bool is_transient(const await_t *await)
{
    return await->begun
        && agent_error_http(await->call->err->id) == HTTP_SERVICE_UNAVAILABLE;
}

/* Sends the headers at the first turn, white space at heartbeats. */
static apr_status_t send_heartbeat(await_t *await, agent_wake_reason_t reason)
{
    if (!await->sends_values) {
        return APR_SUCCESS;
    }
    if (await->begun) {
        return reason == AGENT_REASON_HEARTBEAT_QUERY
                || reason == AGENT_REASON_HEARTBEAT
            ? agent_response_write(await->call, "\n")
            : APR_SUCCESS;
    }
    await->begun = true;
    return agent_response_begin(await->call, "application/json");
}

/* The body in place of the values when the 200 has been sent. */
static const char *print_error(const agent_call_t *call, apr_pool_t *pool)
{
    return apr_pstrcat(pool,
                       "{\"__error__\":", agent_problem_object(call->err, pool),
                       "}", NULL);
}

static void finish_begun(const await_t *await, apr_status_t rv,
                         const char *body, apr_pool_t *scratch)
{
    agent_call_t *call = await->call;

    if (rv == APR_SUCCESS) {
        agent_response_write(call, body);
        return;
    }
    agent_problem_log(call);
    if (call->err->id == AGENT_E_SHUTTING_DOWN) {
        agent_response_abort(call);
        return;
    }
    agent_response_write(call, print_error(call, scratch));
}

/* Returns what the handler returns; in a turn it does not matter. */
static int finish(const await_t *await, apr_status_t rv, const char *body,
                  apr_pool_t *scratch)
{
    agent_call_t *call = await->call;

    if (await->begun) {
        finish_begun(await, rv, body, scratch);
        return OK;
    }
    if (rv == APR_SUCCESS && await->sends_values) {
        return agent_response_json_transient(call, HTTP_OK, body);
    }
    /* A run that was rolled back has ended too. */
    if (!await->sends_values
        && (rv == APR_SUCCESS || call->err->id == AGENT_E_RUN_NOT_FOUND)) {
        return agent_response_empty(call, HTTP_NO_CONTENT);
    }
    return agent_problem_send(call);
}

/* The client has disconnected. */
static agent_turn_t disconnect(const await_t *await, apr_pool_t *scratch)
{
    agent_disconnect_end(await->call, await->cancels, scratch);
    return AGENT_TURN_DONE;
}

static agent_turn_t keep_waiting(await_t *await, apr_status_t rv,
                                 agent_wake_reason_t reason,
                                 apr_pool_t *scratch)
{
    if (send_heartbeat(await, reason) != APR_SUCCESS) {
        return disconnect(await, scratch);
    }
    /* HEAD ends with the headers. */
    if (await->call->r->header_only) {
        return AGENT_TURN_DONE;
    }
    return rv == APR_EAGAIN ? AGENT_TURN_WAIT
                            : agent_turn_after_error(await->call->err);
}

/* The run has not ended, or could not be read: waits again, unless the child
 * stops or the client has disconnected. */
static agent_turn_t wait_again(await_t *await, apr_status_t rv,
                               agent_wake_reason_t reason, apr_pool_t *scratch)
{
    agent_call_t *call = await->call;

    if (reason == AGENT_REASON_HALF_CLOSED) {
        return disconnect(await, scratch);
    }
    if (reason != AGENT_REASON_STOPPING) {
        return keep_waiting(await, rv, reason, scratch);
    }
    rv = agent_error_set(&call->err, AGENT_E_SHUTTING_DOWN, NULL, NULL,
                         call->pool);
    (void)!finish(await, rv, NULL, scratch);
    return AGENT_TURN_DONE;
}

/* A half-closed client may still read, so it gets the values if the run has
 * ended: it may have closed its side while it waited for its first turn. */
static agent_turn_t poll_run(await_t *await, agent_wake_reason_t reason,
                             agent_waiter_t *waiter, apr_pool_t *scratch)
{
    agent_call_t *call = await->call;
    const char *body;
    const char *cursor;
    apr_status_t rv = agent_run_join(&body, &cursor, call->child->turn_db,
                                     &call->ref, &call->err, scratch);

    if (rv == APR_EAGAIN) {
        agent_waiter_subscribe_end(waiter);
    }
    if (rv == APR_EAGAIN || (rv != APR_SUCCESS && is_transient(await))) {
        return wait_again(await, rv, reason, scratch);
    }
    if (rv == APR_SUCCESS && cursor != NULL && await->sends_values) {
        return agent_large_values_begin(&await->values, call, &call->ref, body,
                                        cursor, await->begun, reason, scratch);
    }
    (void)!finish(await, rv, body, scratch);
    return AGENT_TURN_DONE;
}

static agent_turn_t take_turn(void *baton, agent_wake_reason_t reason,
                              agent_waiter_t *waiter, apr_pool_t *scratch)
{
    await_t *await = baton;

    if (reason == AGENT_REASON_CLIENT_GONE) {
        return disconnect(await, scratch);
    }
    if (await->values != NULL) {
        return agent_large_values_take_turn(await->values, reason, scratch);
    }
    if (reason == AGENT_REASON_KEY_INVALID) {
        (void)!finish(await, agent_invalid_key_set(await->call), NULL, scratch);
        return AGENT_TURN_DONE;
    }
    return reason == AGENT_REASON_HEARTBEAT
        ? keep_waiting(await, APR_EAGAIN, reason, scratch)
        : poll_run(await, reason, waiter, scratch);
}

/* For a request that may not wait: refused if the run has not ended, or has
 * large values. */
static int respond_at_once(const await_t *await)
{
    agent_call_t *call = await->call;
    agent_error_t *refusal = call->err;
    const char *body;
    const char *cursor;
    apr_status_t rv = agent_run_join(&body, &cursor, call->db, &call->ref,
                                     &call->err, call->pool);

    if (rv == APR_SUCCESS && cursor != NULL && await->sends_values) {
        rv = APR_EAGAIN;
    }
    if (rv == APR_EAGAIN) {
        call->err = refusal;
    }
    return finish(await, rv, body, call->pool);
}

static int start(agent_call_t *call, bool sends_values, bool cancels)
{
    await_t *await = apr_pcalloc(call->pool, sizeof(*await));
    const agent_parking_t parking = {.registry = call->child->waiters,
                                     .key = call->ref.run_id,
                                     .deployment_id = call->ref.deployment_id,
                                     .account = agent_requester_account(call),
                                     .identity = call->identity,
                                     .take_turn = take_turn,
                                     .baton = await};
    int result;

    await->call = call;
    await->sends_values = sends_values;
    await->cancels = cancels;
    agent_body_release(call);
    if (agent_park(&result, call->r, &parking, &call->err) != APR_SUCCESS) {
        return respond_at_once(await);
    }
    return result;
}

int agent_await_end(agent_call_t *call)
{
    return start(call, false, false);
}

int agent_await_values(agent_call_t *call, bool cancels)
{
    return start(call, true, cancels);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for the end of a run, with signs of life; see await.h. */
#include "await.h"

#include <apr_strings.h>

#include "../http/problem.h"
#include "../http/response.h"
#include "../model/run.h"

/* Clients watch for silence of three times this. */
#define HEARTBEAT apr_time_from_sec(5)

typedef struct await_t {
    agent_call_t *call;
    agent_waiter_t *waiter;
    /* Something may be sent before the run has ended. */
    bool shows_life;
    /* The 200 and its headers are sent: errors can only be written into the
     * body, and white space may be. */
    bool begun;
    /* Cleared before each look, so that a long wait does not grow. */
    apr_pool_t *scratch;
} await_t;

/* True when the wait may go on although this look at the run failed: the
 * response has begun, and the database will come back. */
static bool is_passing(const await_t *await)
{
    return await->begun
        && agent_error_http(await->call->err->id) == HTTP_SERVICE_UNAVAILABLE;
}

/* One sign of life: the headers at first, white space later. */
static apr_status_t show_life(await_t *await)
{
    agent_call_t *call = await->call;

    if (!await->shows_life) {
        return APR_SUCCESS;
    }
    if (await->begun) {
        return agent_response_write(call, "\n");
    }
    await->begun = true;
    return agent_response_begin(call, "application/json");
}

/*
 * Looks and waits until the run has ended: *body is its values. APR_EGENERAL:
 * call->err says why not; APR_ECONNABORTED: the client is gone. The waiter was
 * there before the first look, so that no wake-up is lost.
 */
static apr_status_t await_body(const char **body, await_t *await)
{
    agent_call_t *call = await->call;
    agent_wait_t woken = AGENT_WAIT_TIMEOUT;

    for (;;) {
        apr_status_t rv;

        apr_pool_clear(await->scratch);
        rv = agent_run_join(body, call->db, call->ids, &call->err,
                            await->scratch);
        if (rv != APR_EAGAIN && (rv == APR_SUCCESS || !is_passing(await))) {
            return rv;
        }
        if (woken == AGENT_WAIT_TIMEOUT && show_life(await) != APR_SUCCESS) {
            return APR_ECONNABORTED;
        }
        woken = agent_wait_for(await->waiter, HEARTBEAT);
        if (woken == AGENT_WAIT_STOPPING) {
            return agent_error_set(&call->err, AGENT_E_SHUTTING_DOWN, NULL,
                                   NULL, call->pool);
        }
    }
}

static apr_status_t enter(await_t *await, agent_call_t *call)
{
    await->call = call;
    apr_pool_create(&await->scratch, call->pool);
    return agent_wait_enter(&await->waiter, call->child->waits, call->ids[2],
                            &call->err, call->pool);
}

int agent_await_end(agent_call_t *call)
{
    await_t await = {0};
    const char *body;
    apr_status_t rv = enter(&await, call);

    if (rv == APR_SUCCESS) {
        rv = await_body(&body, &await);
        agent_wait_leave(await.waiter);
    }
    /* A run that was rolled back has ended by not being there. */
    if (rv == APR_SUCCESS || call->err->id == AGENT_E_RUN_NOT_FOUND) {
        return agent_response_empty(call, HTTP_NO_CONTENT);
    }
    return agent_problem_send(call);
}

/* The body that says why there are no values, where the 200 is already out. */
static const char *print_error(const agent_call_t *call)
{
    return apr_pstrcat(call->pool, "{\"__error__\":{\"error\":\"",
                       agent_error_code(call->err->id), "\",\"message\":",
                       agent_json_quote(call->err->detail, call->pool), "}}",
                       NULL);
}

static int finish_values(await_t *await, apr_status_t rv, const char *body)
{
    agent_call_t *call = await->call;

    if (rv == APR_SUCCESS) {
        agent_response_write(call, body);
        return OK;
    }
    if (rv == APR_ECONNABORTED) {
        return agent_response_abort(call);
    }
    agent_problem_log(call);
    if (call->err->id == AGENT_E_SHUTTING_DOWN) {
        return agent_response_abort(call);
    }
    agent_response_write(call, print_error(call));
    return OK;
}

/* A run that has ended needs no place to wait: only others are refused. */
static int answer_at_once(agent_call_t *call)
{
    agent_error_t *refusal = call->err;
    const char *body;
    apr_status_t rv = agent_run_join(&body, call->db, call->ids, &call->err,
                                     call->pool);

    if (rv == APR_SUCCESS) {
        return agent_response_json(call, HTTP_OK, body);
    }
    if (rv == APR_EAGAIN) {
        call->err = refusal;
    }
    return agent_problem_send(call);
}

int agent_await_values(agent_call_t *call)
{
    await_t await = {.shows_life = true};
    const char *body = NULL;
    apr_status_t rv = enter(&await, call);

    if (rv != APR_SUCCESS) {
        return answer_at_once(call);
    }
    rv = await_body(&body, &await);
    agent_wait_leave(await.waiter);
    if (await.begun) {
        return finish_values(&await, rv, body);
    }
    return rv == APR_SUCCESS ? agent_response_json(call, HTTP_OK, body)
                             : agent_problem_send(call);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of threads; see copy.h. The supervisor sweeps the remains of an
 * unfinished copy: soon after it was abandoned, or after two minutes if this
 * child dies or cannot reach the database. */
#include "copy.h"

#include <apr_strings.h>

#include "../core/uuid.h"
#include "../http/body.h"
#include "../http/problem.h"
#include "../http/requester.h"
#include "../http/response.h"
#include "../model/thread.h"
#include "../model/thread_copy.h"
#include "../wait/park.h"
#include "invalid_key.h"
#include "large_values.h"

/* Limits the attempts at a thread whose runs are deleted again and again. */
#define MOST_ATTEMPTS 3

typedef struct copy_t {
    agent_call_t *call;
    agent_run_ref_t ref;    /* of the copy */
    const char *changed_id; /* of the attempt before this one */
    int attempts;
    /* A piece was copied. */
    bool begun;
    /* Large values of the copy, while its record is sent; NULL before that. */
    agent_large_values_t *values;
} copy_t;

static void begin(copy_t *copy)
{
    char id[AGENT_UUID_SIZE];

    agent_uuid_v7(id);
    copy->changed_id = copy->ref.thread_id;
    copy->ref = (agent_run_ref_t){
        .deployment_id = copy->call->ref.deployment_id,
        .thread_id = apr_pstrdup(copy->call->pool, id)};
    copy->begun = false;
    copy->attempts++;
}

/* After a failed piece: whether to copy another one. */
static bool may_continue(copy_t *copy)
{
    agent_error_id_t id = copy->call->err->id;

    if (id == AGENT_E_THREAD_CHANGED && copy->attempts < MOST_ATTEMPTS) {
        begin(copy);
        return true;
    }
    /* The pool has waited for a connection. */
    return id == AGENT_E_POOL_EXHAUSTED && copy->begun;
}

static agent_turn_t respond(copy_t *copy, apr_status_t rv,
                            agent_wake_reason_t reason, apr_pool_t *scratch)
{
    agent_call_t *call = copy->call;
    const char *body;
    const char *cursor = NULL;

    if (rv == APR_SUCCESS) {
        rv = agent_thread_get(&body, &cursor, call->child->turn_db, &copy->ref,
                              false, &call->err, scratch);
    }
    if (rv == APR_SUCCESS && cursor != NULL) {
        return agent_large_values_begin(&copy->values, call, &copy->ref, body,
                                        cursor, false, reason, scratch);
    }
    (void)!(rv == APR_SUCCESS
                ? agent_response_json_transient(call, HTTP_OK, body)
                : agent_problem_send(call));
    return AGENT_TURN_DONE;
}

/* *more: as in agent_thread_copy_piece(). */
static apr_status_t copy_piece(bool *more, const copy_t *copy,
                               apr_pool_t *scratch)
{
    agent_call_t *call = copy->call;
    const agent_thread_copy_t ids = {.thread_id = copy->ref.thread_id,
                                     .changed_id = copy->changed_id};

    if (agent_invalid_key_check(call) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    return agent_thread_copy_piece(more, call->child->turn_db, &call->ref, &ids,
                                   &call->err, scratch);
}

/* Its id is not told to anybody. */
static void give_up(const copy_t *copy, apr_pool_t *scratch)
{
    agent_error_t *ignored;

    if (copy->begun) {
        agent_thread_copy_abandon(copy->call->child->turn_db, &copy->ref,
                                  &ignored, scratch);
    }
}

static agent_turn_t end(copy_t *copy, agent_wake_reason_t reason,
                        apr_pool_t *scratch)
{
    agent_call_t *call = copy->call;

    give_up(copy, scratch);
    switch (reason) {
    case AGENT_REASON_KEY_INVALID:
        return agent_invalid_key_respond(call, false);
    case AGENT_REASON_STOPPING:
        return respond(copy,
                       agent_error_set(&call->err, AGENT_E_SHUTTING_DOWN, NULL,
                                       NULL, call->pool),
                       reason, scratch);
    default:
        return AGENT_TURN_DONE;
    }
}

/* No turn follows. */
static bool is_end(agent_wake_reason_t reason)
{
    return reason == AGENT_REASON_CLIENT_GONE
        || reason == AGENT_REASON_HALF_CLOSED
        || reason == AGENT_REASON_KEY_INVALID
        || reason == AGENT_REASON_STOPPING;
}

static agent_turn_t take_turn(void *baton, agent_wake_reason_t reason,
                              agent_waiter_t *waiter, apr_pool_t *scratch)
{
    copy_t *copy = baton;
    bool more = copy->begun;
    apr_status_t rv;

    if (copy->values != NULL) {
        return agent_large_values_take_turn(copy->values, reason, scratch);
    }
    if (is_end(reason)) {
        return end(copy, reason, scratch);
    }
    rv = copy_piece(&more, copy, scratch);
    if (APR_STATUS_IS_EAGAIN(rv)) {
        return AGENT_TURN_MORE;
    }
    if (rv == APR_SUCCESS ? more : may_continue(copy)) {
        copy->begun = copy->begun || rv == APR_SUCCESS;
        return AGENT_TURN_MORE;
    }
    /* Without the database another call would fail after as long a wait. */
    if (rv != APR_SUCCESS && copy->call->err->id != AGENT_E_UNAVAILABLE) {
        give_up(copy, scratch);
    }
    return respond(copy, rv, reason, scratch);
}

int agent_copy_respond(agent_call_t *call)
{
    copy_t *copy = apr_pcalloc(call->pool, sizeof(*copy));
    agent_parking_t parking = {.registry = call->child->waiters,
                               .deployment_id = call->ref.deployment_id,
                               .account = agent_requester_account(call),
                               .identity = call->identity,
                               .take_turn = take_turn,
                               .baton = copy};
    int result;

    copy->call = call;
    begin(copy);
    parking.key = copy->ref.thread_id;
    agent_body_release(call);
    if (agent_park(&result, call->r, &parking, &call->err) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for a run, or for their clients to read a response,
 * without a thread. */
#include "park.h"

#include <http_protocol.h>
#include <http_request.h>

#include "../private.h"
#include "client_address.h"
#include "input.h"
#include "park_private.h"

/* A cleanup of the request, however it ends. */
static apr_status_t forget_request(void *data)
{
    const request_rec *r = data;
    agent_park_t *park = agent_park_find(r->connection);

    if (park->r == r) {
        agent_output_hold(park->output, false);
        park->r = NULL;
        park->waiter = NULL;
    }
    return APR_SUCCESS;
}

static request_rec *unpark(agent_park_t *park)
{
    request_rec *r = park->r;

    agent_output_hold(park->output, false);
    agent_output_charge(park->output, 0);
    if (park->waiter != NULL) {
        agent_waiter_unregister(park->waiter);
    }
    park->r = NULL;
    park->waiter = NULL;
    return r;
}

/* Ends the response while its output is still held: a filter may have kept all
 * of it until its end. */
static void finalize(agent_park_t *park)
{
    park->is_finalized = true;
    ap_finalize_request_protocol(park->r);
}

/* As httpd does after a handler that has not suspended. */
static int finish(agent_park_t *park)
{
    ap_process_request_after_handler(unpark(park));
    return OK;
}

/* ---- turns ---- */

static void take_turn(agent_park_t *park, agent_wake_reason_t reason)
{
    agent_turn_t turn = agent_turn_take(&park->parking, park->waiter, reason);

    park->is_done = turn == AGENT_TURN_DONE;
    park->wants_more = turn == AGENT_TURN_MORE;
}

static agent_wake_reason_t take_reason(conn_rec *c, const agent_park_t *park)
{
    agent_wake_reason_t reason;

    do {
        reason = agent_waiter_take_or_idle(park->waiter, park->wants_more);
    } while (
        reason == AGENT_REASON_INPUT
        && !agent_input_is_closed(c, park->parking.registry, park->waiter));
    return c->aborted || reason == AGENT_REASON_INPUT ? AGENT_REASON_CLIENT_GONE
                                                      : reason;
}

int agent_park_advance(conn_rec *c, agent_park_t *park)
{
    for (;;) {
        agent_wake_reason_t reason;

        if (agent_output_send(park->output, c)) {
            return agent_park_wait_for_client(c, park, AGENT_CLIENT_READS);
        }
        agent_park_release_client(park);
        if (park->is_finalized) {
            return finish(park);
        }
        if (park->is_done) {
            finalize(park);
            continue;
        }
        reason = take_reason(c, park);
        if (reason == AGENT_REASON_NONE) {
            return agent_park_wait_on(c, park,
                                      agent_waiter_descriptor(park->waiter));
        }
        take_turn(park, reason);
    }
}

void agent_park_abandon(conn_rec *c, agent_park_t *park)
{
    agent_park_restore_client(c, park);
    c->aborted = 1;
    if (park->waiter != NULL) {
        agent_turn_take(&park->parking, park->waiter, AGENT_REASON_CLIENT_GONE);
    }
    ap_process_request_after_handler(unpark(park));
}

/* ---- parking ---- */

/* Makes r the parked request. waiter: NULL when the response is complete and
 * only has to be sent. */
static void begin_request(agent_park_t *park, request_rec *r,
                          agent_waiter_t *waiter)
{
    park->r = r;
    park->waiter = waiter;
    park->wants_more = true;
    park->is_done = waiter == NULL;
    park->is_finalized = false;
    apr_pool_cleanup_register(r->pool, r, forget_request,
                              apr_pool_cleanup_null);
    agent_output_hold(park->output, true);
}

static int park_request(agent_park_t *park, request_rec *r,
                        const agent_parking_t *parking, agent_waiter_t *waiter)
{
    park->parking = *parking;
    agent_output_set_owner(park->output, parking->deployment_id);
    begin_request(park, r, waiter);
    /* A first turn may read a large response: few are taken at a time. */
    if (!agent_waiter_keep_thread(waiter)) {
        return SUSPENDED;
    }
    take_turn(park, AGENT_REASON_QUERY);
    if (!park->is_done) {
        return SUSPENDED;
    }
    finalize(park);
    if (agent_output_send(park->output, r->connection)) {
        return SUSPENDED;
    }
    unpark(park);
    return OK;
}

/* httpd does not expect a handler to suspend after an internal redirect. */
agent_park_t *agent_park_find_usable(const request_rec *r)
{
    const conn_rec *c = r->connection;
    agent_park_t *park = c->master == NULL ? agent_park_find(c) : NULL;

    return park != NULL && park->nested && r->main == NULL && r->prev == NULL
            && !c->clogging_input_filters
        ? park
        : NULL;
}

apr_status_t agent_park_check(const request_rec *r,
                              const agent_parking_t *parking,
                              agent_error_t **err)
{
    const agent_waiter_params_t params = {
        .deployment_id = parking->deployment_id,
        .account = parking->account,
        .is_stream = parking->is_stream,
        .address = agent_client_address_number(r->useragent_addr),
        .parked = agent_park_find_usable(r) != NULL};

    return agent_waiter_check(parking->registry, &params, err, r->pool);
}

apr_status_t agent_park(int *result, request_rec *r,
                        const agent_parking_t *parking, agent_error_t **err)
{
    agent_park_t *park = agent_park_find_usable(r);
    const agent_waiter_params_t params = {
        .key = parking->key,
        .deployment_id = parking->deployment_id,
        .account = parking->account,
        .identity = parking->identity,
        .address = agent_client_address_number(r->useragent_addr),
        .client_fd = r->connection->master == NULL
            ? agent_park_descriptor(r->connection)
            : -1,
        .watches_input = agent_input_may_close(r->connection),
        .parked = park != NULL,
        .is_stream = parking->is_stream,
        .has_end = parking->has_end,
        .timeout = parking->timeout};
    agent_waiter_t *waiter;
    apr_status_t rv = agent_waiter_register(&waiter, parking->registry, &params,
                                            err, r->pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    *result = OK;
    if (park == NULL) {
        agent_turn_run_blocking(parking, waiter, r->connection);
    }
    else {
        *result = park_request(park, r, parking, waiter);
    }
    return APR_SUCCESS;
}

/* ---- complete responses ---- */

/* Turns of a parked request hold output anyway. */
bool agent_park_hold_response(const request_rec *r, const char *deployment_id)
{
    const agent_park_t *park = agent_park_find_usable(r);

    if (park == NULL || park->r != NULL) {
        return false;
    }
    agent_output_set_owner(park->output, deployment_id);
    agent_output_hold(park->output, true);
    return true;
}

int agent_park_send_response(request_rec *r, apr_size_t bytes)
{
    agent_park_t *park = agent_park_find(r->connection);

    begin_request(park, r, NULL);
    finalize(park);
    if (!agent_output_send(park->output, r->connection)) {
        unpark(park);
        return OK;
    }
    agent_output_charge(park->output, bytes);
    return SUSPENDED;
}

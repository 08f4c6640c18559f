/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait for a run without a thread.
 *
 * httpd 2.4.63 and later can keep a connection in the MPM until its socket is
 * readable or writable (CONN_STATE_ASYNC_WAITIO) and then call the
 * process_connection hooks again in any worker. A parked request is woken by
 * something other than its client, so the waiter's eventfd replaces the
 * client's descriptor in the socket while the MPM has the connection. No other
 * file exchanges them. All functions run in the worker that owns the connection
 * at the time.
 */
#include "park.h"

#include <unistd.h>

#include <apr_portable.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>

#include "../private.h"
#include "client_address.h"
#include "input.h"
#include "park_state.h"

agent_park_t *agent_park_find(const conn_rec *c)
{
    return ap_get_module_config(c->conn_config, &agent_module);
}

/* ---- descriptors ---- */

static void set_descriptor(conn_rec *c, int fd)
{
    apr_socket_t *socket = ap_get_conn_socket(c);

    apr_os_sock_put(&socket, &fd, c->pool);
}

static int get_descriptor(const conn_rec *c)
{
    apr_os_sock_t fd = -1;

    apr_os_sock_get(&fd, ap_get_conn_socket((conn_rec *)c));
    return fd;
}

void agent_park_restore_client(conn_rec *c, agent_park_t *park)
{
    if (park->client_fd >= 0) {
        set_descriptor(c, park->client_fd);
        park->client_fd = -1;
    }
}

/* The MPM could not poll the eventfd and has closed it as the connection's
 * socket. The client's descriptor is left to close. */
static void close_client(agent_park_t *park)
{
    agent_waiter_forget_descriptor(park->waiter);
    agent_waiter_unregister(park->waiter);
    close(park->client_fd);
    park->client_fd = -1;
}

apr_status_t agent_park_restore_before_close(void *data)
{
    conn_rec *c = data;
    agent_park_t *park = agent_park_find(c);

    if (park->client_fd >= 0 && get_descriptor(c) < 0) {
        close_client(park);
    }
    agent_park_restore_client(c, park);
    return APR_SUCCESS;
}

const agent_client_socket_t *agent_park_client(const request_rec *r)
{
    agent_client_socket_t *client = ap_get_module_config(r->request_config,
                                                         &agent_module);

    if (client == NULL) {
        agent_client_socket_create(&client, get_descriptor(r->connection),
                                   r->pool);
        ap_set_module_config(r->request_config, &agent_module, client);
    }
    return client;
}

/* ---- waiting ---- */

/* Held output may be dropped while the connection waits; see budget.h. */
static void offer_output(const agent_park_t *park)
{
    const request_rec *r = park->r != NULL ? park->r : park->unread;

    if (agent_output_has_held(park->output)) {
        agent_output_wait(park->output, agent_park_client(r));
    }
}

int agent_park_wait_in_mpm(conn_rec *c, conn_sense_e sense)
{
    offer_output(agent_park_find(c));
    c->cs->sense = sense;
    c->cs->state = CONN_STATE_ASYNC_WAITIO;
    return OK;
}

static int wait_until_woken(conn_rec *c, agent_park_t *park)
{
    park->client_fd = get_descriptor(c);
    set_descriptor(c, agent_waiter_descriptor(park->waiter));
    return agent_park_wait_in_mpm(c, CONN_SENSE_WANT_READ);
}

/* A cleanup of the request, however it ends. */
static apr_status_t forget_request(void *data)
{
    const request_rec *r = data;
    agent_park_t *park = agent_park_find(r->connection);

    if (park->r == r) {
        agent_output_hold(park->output, false);
        park->r = NULL;
    }
    return APR_SUCCESS;
}

static request_rec *unpark(agent_park_t *park)
{
    request_rec *r = park->r;

    agent_output_hold(park->output, false);
    agent_waiter_unregister(park->waiter);
    park->r = NULL;
    return r;
}

/* As httpd does after a handler that has not suspended. */
static int finish(agent_park_t *park)
{
    request_rec *r = unpark(park);

    ap_finalize_request_protocol(r);
    ap_process_request_after_handler(r);
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
            return agent_park_wait_in_mpm(c, CONN_SENSE_WANT_WRITE);
        }
        if (park->is_done) {
            return finish(park);
        }
        reason = take_reason(c, park);
        if (reason == AGENT_REASON_NONE) {
            return wait_until_woken(c, park);
        }
        take_turn(park, reason);
    }
}

void agent_park_abandon(conn_rec *c, agent_park_t *park)
{
    agent_park_restore_client(c, park);
    c->aborted = 1;
    agent_turn_take(&park->parking, park->waiter, AGENT_REASON_CLIENT_GONE);
    ap_process_request_after_handler(unpark(park));
}

/* ---- parking ---- */

static int park_request(agent_park_t *park, request_rec *r,
                        const agent_parking_t *parking, agent_waiter_t *waiter)
{
    park->r = r;
    park->parking = *parking;
    park->waiter = waiter;
    apr_pool_cleanup_register(r->pool, r, forget_request,
                              apr_pool_cleanup_null);
    agent_output_hold(park->output, true);
    park->wants_more = true;
    park->is_done = false;
    /* A first turn may read a large response: few are taken at a time. */
    if (!agent_waiter_keep_thread(waiter)) {
        return SUSPENDED;
    }
    take_turn(park, AGENT_REASON_QUERY);
    if (!park->is_done || agent_output_send(park->output, r->connection)) {
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
                              agent_waiter_registry_t *registry,
                              agent_error_t **err)
{
    return agent_waiter_check(registry, agent_park_find_usable(r) != NULL,
                              agent_client_address_number(r->useragent_addr),
                              err, r->pool);
}

apr_status_t agent_park(int *result, request_rec *r,
                        const agent_parking_t *parking, agent_error_t **err)
{
    agent_park_t *park = agent_park_find_usable(r);
    const agent_waiter_params_t params = {
        .key = parking->key,
        .account_id = parking->account_id,
        .address = agent_client_address_number(r->useragent_addr),
        .client_fd = r->connection->master == NULL
            ? get_descriptor(r->connection)
            : -1,
        .watches_input = agent_input_may_close(r->connection),
        .parked = park != NULL,
        .is_stream = parking->is_stream};
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

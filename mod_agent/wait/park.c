/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait without a thread; see park.h.
 *
 * httpd 2.4.63 and later let a connection wait in the MPM until its socket is
 * readable or writable (CONN_STATE_ASYNC_WAITIO), and then call the
 * process_connection hooks again in any worker. A parked request is to be woken
 * by something else than its client, so the waiter's eventfd stands in for the
 * socket's descriptor while the MPM has the connection. This file is the only
 * one that exchanges them. Everything here runs in the worker that owns the
 * connection at that time.
 */
#include "park.h"

#include <unistd.h>

#include <ap_mpm.h>
#include <apr_portable.h>
#include <http_connection.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mpm_common.h>
#include <scoreboard.h>

#include "../private.h"
#include "client_address.h"
#include "input.h"
#include "output.h"

/* Output a child may hold for clients that do not read. */
#define OUTPUT_BUDGET_BYTES (64 * 1024 * 1024)

/* Of one connection. */
typedef struct park_t {
    agent_output_t *output;
    /* The other hooks run inside ours. */
    bool nested;
    /* The parked request; NULL = none. */
    request_rec *r;
    agent_parking_t parking;
    agent_waiter_t *waiter;
    bool wants_more;
    bool is_done;
    /* The client's descriptor while the waiter's stands in for it, else -1. */
    int client_fd;
    /* The request whose client has not sent all of it; NULL = none. */
    request_rec *unread;
    agent_reading_t reading;
    agent_body_slot_t *slot;
} park_t;

/* Set in child_init. */
static bool can_park;

static park_t *find_park(const conn_rec *c)
{
    return ap_get_module_config(c->conn_config, &agent_module);
}

/* ---- the descriptors ---- */

static void exchange_descriptors(conn_rec *c, int fd)
{
    apr_socket_t *socket = ap_get_conn_socket(c);

    apr_os_sock_put(&socket, &fd, c->pool);
}

static void restore_client(conn_rec *c, park_t *park)
{
    if (park->client_fd >= 0) {
        exchange_descriptors(c, park->client_fd);
        park->client_fd = -1;
    }
}

static int find_descriptor(const conn_rec *c)
{
    apr_os_sock_t fd = -1;

    apr_os_sock_get(&fd, ap_get_conn_socket((conn_rec *)c));
    return fd;
}

/* The MPM could not poll the eventfd and has closed it, as the socket of the
 * connection: the client's is left, and nobody else closes it. */
static void close_client(park_t *park)
{
    agent_wait_lose_descriptor(park->waiter);
    agent_wait_leave(park->waiter);
    close(park->client_fd);
    park->client_fd = -1;
}

static apr_status_t restore_before_close(void *data)
{
    conn_rec *c = data;
    park_t *park = find_park(c);

    if (park->client_fd >= 0 && find_descriptor(c) < 0) {
        close_client(park);
    }
    restore_client(c, park);
    return APR_SUCCESS;
}

const agent_client_socket_t *agent_park_client(const request_rec *r)
{
    agent_client_socket_t *client = ap_get_module_config(r->request_config,
                                                         &agent_module);

    if (client == NULL) {
        agent_client_socket_create(&client, find_descriptor(r->connection),
                                   r->pool);
        ap_set_module_config(r->request_config, &agent_module, client);
    }
    return client;
}

static void take_parked_turn(park_t *park, agent_wait_t why)
{
    agent_turn_t turn = agent_block_take_turn(&park->parking, park->waiter,
                                              why);

    park->is_done = turn == AGENT_TURN_DONE;
    park->wants_more = turn == AGENT_TURN_MORE;
}

/* ---- parking ---- */

/* What is held stays only as long as others need no room. */
static void offer_output(const park_t *park)
{
    const request_rec *r = park->r != NULL ? park->r : park->unread;

    if (agent_output_has_held(park->output)) {
        agent_output_wait(park->output, agent_park_client(r));
    }
}

static int wait_in_mpm(conn_rec *c, conn_sense_e sense)
{
    offer_output(find_park(c));
    c->cs->sense = sense;
    c->cs->state = CONN_STATE_ASYNC_WAITIO;
    return OK;
}

static int wait_until_woken(conn_rec *c, park_t *park)
{
    park->client_fd = find_descriptor(c);
    exchange_descriptors(c, agent_wait_descriptor(park->waiter));
    return wait_in_mpm(c, CONN_SENSE_WANT_READ);
}

/* However the request ends: it is not parked any more. */
static apr_status_t forget_request(void *data)
{
    const request_rec *r = data;
    park_t *park = find_park(r->connection);

    if (park->r == r) {
        agent_output_hold(park->output, false);
        park->r = NULL;
    }
    return APR_SUCCESS;
}

static request_rec *leave(park_t *park)
{
    request_rec *r = park->r;

    agent_output_hold(park->output, false);
    agent_wait_leave(park->waiter);
    park->r = NULL;
    return r;
}

/* What httpd does itself after a handler that has not suspended. */
static int finish(park_t *park)
{
    request_rec *r = leave(park);

    ap_finalize_request_protocol(r);
    ap_process_request_after_handler(r);
    return OK;
}

static agent_wait_t take_or_rest(conn_rec *c, const park_t *park)
{
    agent_wait_t why;

    do {
        why = agent_wait_take_or_rest(park->waiter, park->wants_more);
    } while (why == AGENT_WAIT_INPUT
             && !agent_input_has_left(c, park->parking.waits, park->waiter));
    return c->aborted || why == AGENT_WAIT_INPUT ? AGENT_WAIT_GONE : why;
}

/* Takes turns until there is something to wait for. */
static int advance(conn_rec *c, park_t *park)
{
    for (;;) {
        agent_wait_t why;

        if (agent_output_send(park->output, c)) {
            return wait_in_mpm(c, CONN_SENSE_WANT_WRITE);
        }
        if (park->is_done) {
            return finish(park);
        }
        why = take_or_rest(c, park);
        if (why == AGENT_WAIT_NOTHING) {
            return wait_until_woken(c, park);
        }
        take_parked_turn(park, why);
    }
}

static int begin(park_t *park, request_rec *r, const agent_parking_t *parking,
                 agent_waiter_t *waiter)
{
    park->r = r;
    park->parking = *parking;
    park->waiter = waiter;
    apr_pool_cleanup_register(r->pool, r, forget_request,
                              apr_pool_cleanup_null);
    agent_output_hold(park->output, true);
    park->wants_more = true;
    park->is_done = false;
    /* A first turn may read a large answer: few are taken at a time. */
    if (!agent_wait_keep_thread(waiter)) {
        return SUSPENDED;
    }
    take_parked_turn(park, AGENT_WAIT_WOKEN);
    if (!park->is_done || agent_output_send(park->output, r->connection)) {
        return SUSPENDED;
    }
    leave(park);
    return OK;
}

/* Of the connection, if this request may park. After an internal
 * redirect httpd does not expect a handler to suspend. */
static park_t *find_usable_park(const request_rec *r)
{
    const conn_rec *c = r->connection;
    park_t *park = c->master == NULL ? find_park(c) : NULL;

    return park != NULL && park->nested && r->main == NULL && r->prev == NULL
            && !c->clogging_input_filters
        ? park
        : NULL;
}

apr_status_t agent_park_check(const request_rec *r, agent_waits_t *waits,
                              agent_error_t **err)
{
    return agent_wait_check(waits, find_usable_park(r) != NULL,
                            agent_address_number(r->useragent_addr), err,
                            r->pool);
}

apr_status_t agent_park(int *result, request_rec *r,
                        const agent_parking_t *parking, agent_error_t **err)
{
    park_t *park = find_usable_park(r);
    const agent_wait_entry_t entry = {
        .key = parking->key,
        .account_id = parking->account_id,
        .address = agent_address_number(r->useragent_addr),
        .client_fd = r->connection->master == NULL
            ? find_descriptor(r->connection)
            : -1,
        .watches_input = agent_input_may_end(r->connection),
        .parked = park != NULL,
        .is_stream = parking->is_stream};
    agent_waiter_t *waiter;
    apr_status_t rv = agent_wait_enter(&waiter, parking->waits, &entry, err,
                                       r->pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    *result = OK;
    if (park == NULL) {
        agent_block_run(parking, waiter, r->connection);
    }
    else {
        *result = begin(park, r, parking, waiter);
    }
    return APR_SUCCESS;
}

/* ---- requests that wait for their client ---- */

bool agent_park_can_read(const request_rec *r)
{
    return find_usable_park(r) != NULL;
}

static apr_status_t forget_reading(void *data)
{
    const request_rec *r = data;
    park_t *park = find_park(r->connection);

    agent_body_slot_return(park->slot);
    park->unread = NULL;
    return APR_SUCCESS;
}

/* httpd asks only when it reads with a thread that waits. */
static void ask_for_body(request_rec *r)
{
    int status = r->status;
    const char *line = r->status_line;

    r->status = HTTP_CONTINUE;
    r->status_line = NULL;
    ap_send_interim_response(r, 0);
    r->status = status;
    r->status_line = line;
}

int agent_park_read(request_rec *r, const agent_reading_t *reading)
{
    park_t *park = find_park(r->connection);

    park->unread = r;
    park->reading = *reading;
    park->slot = agent_body_slot_take(reading->slots,
                                      agent_address_number(r->useragent_addr),
                                      agent_park_client(r), r->pool);
    apr_pool_cleanup_register(r->pool, r, forget_reading,
                              apr_pool_cleanup_null);
    if (r->expecting_100) {
        agent_output_hold(park->output, true);
        ask_for_body(r);
        agent_output_hold(park->output, false);
    }
    return SUSPENDED;
}

static int wait_for_client(conn_rec *c, park_t *park)
{
    return wait_in_mpm(c,
                       agent_output_send(park->output, c)
                           ? CONN_SENSE_WANT_WRITE
                           : CONN_SENSE_WANT_READ);
}

/* From here on it is a request like others, which may park. */
static int end_reading(conn_rec *c, park_t *park, apr_status_t rv)
{
    request_rec *r = park->unread;
    int result;

    if (!agent_body_slot_return(park->slot)) {
        rv = APR_EBUSY;
    }
    apr_pool_cleanup_run(r->pool, r, forget_reading);
    park->nested = true;
    result = park->reading.go_on(park->reading.baton, rv);
    park->nested = false;
    if (result == SUSPENDED) {
        return advance(c, park);
    }
    /* What httpd does itself after a handler. */
    ap_die(result, r);
    ap_process_request_after_handler(r);
    return OK;
}

static int read_more(conn_rec *c, park_t *park)
{
    apr_status_t rv;

    agent_body_slot_progress(park->slot);
    rv = park->reading.read(park->reading.baton);
    return rv == APR_EAGAIN ? wait_for_client(c, park)
                            : end_reading(c, park, rv);
}

/* ---- hooks ---- */

static park_t *make_park(conn_rec *c)
{
    park_t *park = apr_pcalloc(c->pool, sizeof(*park));

    park->client_fd = -1;
    park->output = agent_output_add(c);
    ap_set_module_config(c->conn_config, &agent_module, park);
    apr_pool_pre_cleanup_register(c->pool, c, restore_before_close);
    return park;
}

/* Runs the other hooks from here, to see a request suspended before the MPM
 * does. */
static int process_connection(conn_rec *c)
{
    park_t *park;
    int rv;

    if (!can_park || c->master != NULL) {
        return DECLINED;
    }
    park = find_park(c);
    if (park == NULL) {
        park = make_park(c);
    }
    if (park->nested) {
        return DECLINED;
    }
    if (park->r != NULL || park->unread != NULL) {
        /* Who counts idle threads must not count this one. */
        ap_update_child_status(
            c->sbh, park->r != NULL ? SERVER_BUSY_WRITE : SERVER_BUSY_READ,
            NULL);
    }
    if (park->r != NULL) {
        restore_client(c, park);
        return advance(c, park);
    }
    if (park->unread != NULL) {
        return read_more(c, park);
    }
    park->nested = true;
    rv = ap_run_process_connection(c);
    park->nested = false;
    if (park->unread != NULL) {
        return wait_for_client(c, park);
    }
    return park->r != NULL ? advance(c, park) : rv;
}

static void resume_connection(conn_rec *c, request_rec *r)
{
    park_t *park = c->master == NULL ? find_park(c) : NULL;

    if (park != NULL) {
        restore_client(c, park);
    }
}

/* The MPM gives up on a parked connection: its client did not read, or did not
 * send, for the time of Timeout. */
static int close_connection(conn_rec *c)
{
    park_t *park = c->master == NULL ? find_park(c) : NULL;

    if (park != NULL) {
        agent_output_drop(park->output, c);
    }
    if (park != NULL && park->r != NULL) {
        restore_client(c, park);
        c->aborted = 1;
        agent_block_take_turn(&park->parking, park->waiter, AGENT_WAIT_GONE);
        ap_process_request_after_handler(leave(park));
    }
    if (park != NULL && park->unread != NULL) {
        end_reading(c, park, APR_TIMEUP);
        c->cs->state = CONN_STATE_LINGER;
    }
    return OK;
}

void agent_park_register(apr_pool_t *pool)
{
    ap_hook_process_connection(process_connection, NULL, NULL,
                               APR_HOOK_REALLY_FIRST);
    ap_hook_resume_connection(resume_connection, NULL, NULL,
                              APR_HOOK_REALLY_FIRST);
    ap_hook_pre_close_connection(close_connection, NULL, NULL,
                                 APR_HOOK_REALLY_FIRST);
    agent_output_register();
}

apr_status_t agent_park_start(bool enabled, apr_pool_t *pool)
{
    int can_wait = 0;

    can_park = enabled
        && ap_mpm_query(AP_MPMQ_CAN_WAITIO, &can_wait) == APR_SUCCESS
        && can_wait;
    return agent_output_start(OUTPUT_BUDGET_BYTES, pool);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of parked requests in the MPM.
 *
 * httpd 2.4.63 and later can keep a connection in the MPM until its socket is
 * readable or writable (CONN_STATE_ASYNC_WAITIO) and then call the
 * process_connection hooks again in any worker. A parked request is dispatched
 * by us, so an eventfd replaces the client's descriptor in the socket while the
 * MPM has the connection: that of the waiter, or that of client_dispatch.h. No
 * other file exchanges them. All functions run in the worker that owns the
 * connection at the time.
 */
#include <unistd.h>

#include <apr_portable.h>
#include <http_core.h>

#include "../private.h"
#include "park_private.h"

/* Set in child_init. */
static agent_client_dispatch_t *child_clients;

apr_status_t agent_park_client_start(int threads, apr_pool_t *pool)
{
    return agent_client_dispatch_create(&child_clients, threads, pool);
}

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

int agent_park_descriptor(const conn_rec *c)
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
    if (park->waits_for_client) {
        agent_client_dispatch_forget_descriptor(park->wait);
    }
    else {
        agent_waiter_forget_descriptor(park->waiter);
    }
    if (park->waiter != NULL) {
        agent_waiter_unregister(park->waiter);
    }
    close(park->client_fd);
    park->client_fd = -1;
}

apr_status_t agent_park_restore_before_close(void *data)
{
    conn_rec *c = data;
    agent_park_t *park = agent_park_find(c);

    if (park->client_fd >= 0 && agent_park_descriptor(c) < 0) {
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
        agent_client_socket_create(
            &client, agent_park_descriptor(r->connection), r->pool);
        ap_set_module_config(r->request_config, &agent_module, client);
    }
    return client;
}

/* ---- waiting ---- */

static int give_to_mpm(conn_rec *c, conn_sense_e sense)
{
    c->cs->sense = sense;
    c->cs->state = CONN_STATE_ASYNC_WAITIO;
    return OK;
}

int agent_park_wait_on(conn_rec *c, agent_park_t *park, int eventfd)
{
    park->client_fd = agent_park_descriptor(c);
    set_descriptor(c, eventfd);
    return give_to_mpm(c, CONN_SENSE_WANT_READ);
}

/* A cleanup of the request. */
static apr_status_t end_wait(void *data)
{
    agent_park_t *park = data;

    agent_client_dispatch_end_wait(park->wait);
    park->wait = NULL;
    return APR_SUCCESS;
}

/* NULL when descriptors have run out. */
static agent_client_wait_t *find_wait(agent_park_t *park, const request_rec *r)
{
    const agent_client_socket_t *client = agent_park_client(r);

    if (park->wait == NULL && client != NULL
        && agent_client_dispatch_create_wait(
               &park->wait, child_clients,
               agent_client_socket_descriptor(client), r->pool)
            == APR_SUCCESS) {
        /* Before the client socket is closed. */
        apr_pool_cleanup_register(r->pool, park, end_wait,
                                  apr_pool_cleanup_null);
    }
    return park->wait;
}

/* For the MPM to poll the client itself. The turn comes at once if the client
 * reads. */
static conn_sense_e find_sense(agent_client_event_t event)
{
    return event == AGENT_CLIENT_SENDS ? CONN_SENSE_WANT_READ
                                       : CONN_SENSE_WANT_WRITE;
}

int agent_park_wait_for_client(conn_rec *c, agent_park_t *park,
                               agent_client_event_t event)
{
    const request_rec *r = park->r != NULL ? park->r : park->unread;
    agent_client_wait_t *wait = find_wait(park, r);

    agent_output_wait(park->output, agent_park_client(r));
    if (wait == NULL) {
        return give_to_mpm(c, find_sense(event));
    }
    park->waits_for_client = true;
    agent_client_dispatch_begin_wait(wait, event);
    return agent_park_wait_on(c, park, agent_client_dispatch_descriptor(wait));
}

void agent_park_release_client(agent_park_t *park)
{
    park->waits_for_client = false;
    if (park->wait != NULL) {
        agent_client_dispatch_release(park->wait);
    }
}

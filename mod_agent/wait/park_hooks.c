/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of parking: the MPM calls them when a connection was accepted, is
 * readable or writable, and is about to be closed. */
#include "park_private.h"

#include <ap_mpm.h>
#include <http_connection.h>
#include <mpm_common.h>
#include <scoreboard.h>

#include "../private.h"

/* Output that a child may hold for clients that do not read. */
#define OUTPUT_BUDGET_BYTES (64 * 1024 * 1024)

/* Set in child_init. */
static bool can_park;

static agent_park_t *make_park(conn_rec *c)
{
    agent_park_t *park = apr_pcalloc(c->pool, sizeof(*park));

    park->client_fd = -1;
    park->output = agent_output_add(c);
    ap_set_module_config(c->conn_config, &agent_module, park);
    apr_pool_pre_cleanup_register(c->pool, c, agent_park_restore_before_close);
    return park;
}

/* The MPM has returned the connection. The scoreboard counts this thread as
 * busy from now on. */
static int continue_request(conn_rec *c, agent_park_t *park)
{
    ap_update_child_status(
        c->sbh, park->r != NULL ? SERVER_BUSY_WRITE : SERVER_BUSY_READ, NULL);
    agent_park_restore_client(c, park);
    return park->r != NULL ? agent_park_advance(c, park)
                           : agent_park_body_read_more(c, park);
}

/* Runs the other hooks from here, to see a suspended request before the MPM
 * does. */
static int process_connection(conn_rec *c)
{
    agent_park_t *park;
    int rv;

    if (!can_park || c->master != NULL) {
        return DECLINED;
    }
    park = agent_park_find(c);
    if (park == NULL) {
        park = make_park(c);
    }
    if (park->nested) {
        return DECLINED;
    }
    if (park->r != NULL || park->unread != NULL) {
        return continue_request(c, park);
    }
    park->nested = true;
    rv = ap_run_process_connection(c);
    park->nested = false;
    if (park->unread != NULL) {
        return agent_park_body_wait(c, park);
    }
    return park->r != NULL ? agent_park_advance(c, park) : rv;
}

static void resume_connection(conn_rec *c, request_rec *r)
{
    agent_park_t *park = c->master == NULL ? agent_park_find(c) : NULL;

    if (park != NULL) {
        agent_park_restore_client(c, park);
    }
}

/* The MPM closes a parked connection whose client did not read or send for the
 * time of Timeout. */
static int close_connection(conn_rec *c)
{
    agent_park_t *park = c->master == NULL ? agent_park_find(c) : NULL;

    if (park != NULL) {
        agent_output_drop(park->output, c);
    }
    if (park != NULL && park->r != NULL) {
        agent_park_abandon(c, park);
    }
    if (park != NULL && park->unread != NULL) {
        agent_park_body_end(c, park, APR_TIMEUP);
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

apr_status_t agent_park_start(bool enabled, int threads, apr_pool_t *pool)
{
    apr_status_t rv = APR_SUCCESS;
    int can_wait = 0;

    can_park = enabled
        && ap_mpm_query(AP_MPMQ_CAN_WAITIO, &can_wait) == APR_SUCCESS
        && can_wait;
    if (can_park) {
        rv = agent_park_client_start(threads, pool);
    }
    return rv == APR_SUCCESS ? agent_output_start(OUTPUT_BUDGET_BYTES, pool)
                             : rv;
}

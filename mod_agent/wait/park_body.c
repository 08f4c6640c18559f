/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for the rest of their bodies without a thread. */
#include "park_private.h"

#include <http_protocol.h>
#include <http_request.h>

#include "client_address.h"

bool agent_park_can_read(const request_rec *r)
{
    return agent_park_find_usable(r) != NULL;
}

static apr_status_t forget_reading(void *data)
{
    const request_rec *r = data;
    agent_park_t *park = agent_park_find(r->connection);

    agent_body_slot_return(park->slot);
    park->unread = NULL;
    return APR_SUCCESS;
}

/* httpd sends it only when a thread blocks for the body. */
static void send_continue(request_rec *r)
{
    int status = r->status;
    const char *line = r->status_line;

    r->status = HTTP_CONTINUE;
    r->status_line = NULL;
    ap_send_interim_response(r, 0);
    r->status = status;
    r->status_line = line;
}

int agent_park_read(request_rec *r, const agent_body_read_t *reading,
                    bool has_more)
{
    agent_park_t *park = agent_park_find(r->connection);

    park->unread = r;
    park->wants_more = has_more;
    park->reading = *reading;
    park->slot = agent_body_slot_take(
        reading->slots, reading->deployment,
        agent_client_address_number(r->useragent_addr), agent_park_client(r),
        r->pool);
    apr_pool_cleanup_register(r->pool, r, forget_reading,
                              apr_pool_cleanup_null);
    if (r->expecting_100) {
        agent_output_hold(park->output, true);
        send_continue(r);
        agent_output_hold(park->output, false);
    }
    return SUSPENDED;
}

int agent_park_body_wait(conn_rec *c, agent_park_t *park)
{
    agent_client_event_t event = park->wants_more ? AGENT_CLIENT_TURN
                                                  : AGENT_CLIENT_SENDS;

    return agent_park_wait_for_client(
        c, park,
        agent_output_send(park->output, c) ? AGENT_CLIENT_READS : event);
}

/* The wait for the body has ended, with or without it: from here on the request
 * is like any other, may park, and does not delay the bodies of others. */
int agent_park_body_end(conn_rec *c, agent_park_t *park, apr_status_t rv)
{
    request_rec *r = park->unread;
    int result;

    agent_park_restore_client(c, park);
    agent_park_release_client(park);
    if (!agent_body_slot_return(park->slot)) {
        rv = APR_EBUSY;
    }
    apr_pool_cleanup_run(r->pool, r, forget_reading);
    park->nested = true;
    result = park->reading.run_handler(park->reading.baton, rv);
    park->nested = false;
    if (result == SUSPENDED) {
        return agent_park_advance(c, park);
    }
    /* As httpd does after a handler. */
    ap_die(result, r);
    ap_process_request_after_handler(r);
    return OK;
}

int agent_park_body_read_more(conn_rec *c, agent_park_t *park)
{
    apr_status_t rv;

    agent_body_slot_progress(park->slot);
    rv = park->reading.read(park->reading.baton);
    park->wants_more = rv == APR_INCOMPLETE;
    return rv == APR_EAGAIN || rv == APR_INCOMPLETE
        ? agent_park_body_wait(c, park)
        : agent_park_body_end(c, park, rv);
}

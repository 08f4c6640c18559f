/* SPDX-License-Identifier: Apache-2.0 */
/* Data that a client sends while its request waits. */
#include "input.h"

#include <strings.h>

#include <apr_buckets.h>
#include <http_ssl.h>
#include <util_filter.h>

#include "watch.h"

bool agent_input_may_close(conn_rec *c)
{
    return c->master == NULL && ap_ssl_conn_is_ssl(c);
}

/* The link to mod_reqtimeout's filter; to NULL where there is none. */
static ap_filter_t **find_time_limit(conn_rec *c)
{
    ap_filter_t **link = &c->input_filters;

    while (*link != NULL
           && strcasecmp((*link)->frec->name, "reqtimeout") != 0) {
        link = &(*link)->next;
    }
    return link;
}

/* Bypasses mod_reqtimeout, which would treat the wait as a slow body and close
 * the connection. */
static apr_status_t peek(conn_rec *c, apr_bucket_brigade *bb)
{
    ap_filter_t **link = find_time_limit(c);
    ap_filter_t *limit = *link;
    apr_status_t rv;

    if (limit != NULL) {
        *link = limit->next;
    }
    rv = ap_get_brigade(c->input_filters, bb, AP_MODE_SPECULATIVE,
                        APR_NONBLOCK_READ, 1);
    if (limit != NULL) {
        *link = limit;
    }
    return rv == APR_SUCCESS && APR_BRIGADE_EMPTY(bb) ? APR_EAGAIN : rv;
}

bool agent_input_is_closed(conn_rec *c, agent_waiter_registry_t *registry,
                           const agent_waiter_t *waiter)
{
    /* A pool of its own: the connection's would grow with the client's data. */
    apr_pool_t *scratch = agent_waiter_registry_make_pool(registry);
    apr_status_t rv = peek(c, apr_brigade_create(scratch, c->bucket_alloc));
    bool is_empty = APR_STATUS_IS_EAGAIN(rv);

    apr_pool_destroy(scratch);
    if (rv != APR_SUCCESS && !is_empty) {
        return true;
    }
    /* A pipelined request stays unread until this one is answered, and hides
     * the data after it. */
    agent_watch_rearm(registry, waiter, is_empty);
    return false;
}

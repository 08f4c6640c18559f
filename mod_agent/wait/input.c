/* SPDX-License-Identifier: Apache-2.0 */
/* What clients send while their requests wait; see input.h. */
#include "input.h"

#include <strings.h>

#include <apr_buckets.h>
#include <http_ssl.h>
#include <util_filter.h>

#include "state.h"

bool agent_input_may_end(conn_rec *c)
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

/* mod_reqtimeout would count the wait as a slow body and close the connection.
 */
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

bool agent_input_has_left(conn_rec *c, agent_waits_t *waits,
                          const agent_waiter_t *waiter)
{
    /* Not the connection's: it must not grow with what a client sends. */
    apr_pool_t *scratch = agent_waits_make_pool(waits);
    apr_status_t rv = peek(c, apr_brigade_create(scratch, c->bucket_alloc));
    bool is_empty = APR_STATUS_IS_EAGAIN(rv);

    apr_pool_destroy(scratch);
    if (rv != APR_SUCCESS && !is_empty) {
        return true;
    }
    /* Its next request is read when this one has been answered, and until then
     * hides what comes after it. */
    agent_wait_watch_again(waits, waiter, is_empty);
    return false;
}

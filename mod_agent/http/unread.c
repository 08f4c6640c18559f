/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of refused requests; see unread.h. */
#include "unread.h"

#include <apr_atomic.h>
#include <apr_buckets.h>
#include <http_protocol.h>
#include <util_filter.h>

#include "../core/clock.h"

#define FILTER_NAME "AGENT_UNREAD_BODY"

/* As long as httpd lingers over HTTP/1.1. */
#define DISCARD_TIME apr_time_from_sec(30)

#define READ_BYTES ((apr_off_t)64 * 1024)

static ap_filter_rec_t *filter_record;

/* Set in child_init. */
static agent_bodies_t *own_bodies;

/* Returns false at the end of the body, or when it cannot be read. */
static bool discard_piece(request_rec *r, apr_bucket_brigade *piece)
{
    apr_status_t rv = ap_get_brigade(r->input_filters, piece, AP_MODE_READBYTES,
                                     APR_BLOCK_READ, READ_BYTES);
    bool has_more = rv == APR_SUCCESS && !APR_BRIGADE_EMPTY(piece)
        && !APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(piece));

    apr_brigade_cleanup(piece);
    return has_more;
}

static void discard(request_rec *r)
{
    apr_bucket_brigade *piece = apr_brigade_create(r->pool,
                                                   r->connection->bucket_alloc);
    apr_time_t until = agent_clock_boot_now() + DISCARD_TIME;

    while (discard_piece(r, piece) && agent_clock_boot_now() < until) {
    }
    apr_brigade_destroy(piece);
}

/* Where too many threads block, the stream is reset. */
static void discard_bounded(request_rec *r)
{
    if (own_bodies == NULL) {
        return;
    }
    if (apr_atomic_inc32(&own_bodies->blocked) < own_bodies->most_blocked) {
        discard(r);
    }
    apr_atomic_dec32(&own_bodies->blocked);
}

static apr_status_t pass_response(ap_filter_t *filter, apr_bucket_brigade *out)
{
    apr_bucket_brigade *end;
    apr_status_t rv;

    if (APR_BRIGADE_EMPTY(out) || !APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(out))) {
        return ap_pass_brigade(filter->next, out);
    }
    end = apr_brigade_split_ex(out, APR_BRIGADE_LAST(out), NULL);
    APR_BRIGADE_INSERT_TAIL(
        out, apr_bucket_flush_create(filter->r->connection->bucket_alloc));
    rv = ap_pass_brigade(filter->next, out);
    if (rv == APR_SUCCESS) {
        discard_bounded(filter->r);
    }
    ap_remove_output_filter(filter);
    return rv == APR_SUCCESS ? ap_pass_brigade(filter->next, end) : rv;
}

void agent_unread_register(void)
{
    /* Errors of httpd pass the filters of the protocol only. */
    filter_record = ap_register_output_filter(FILTER_NAME, pass_response, NULL,
                                              AP_FTYPE_PROTOCOL);
}

void agent_unread_start(agent_bodies_t *bodies)
{
    own_bodies = bodies;
}

static bool has_filter(const request_rec *r)
{
    const ap_filter_t *filter = r->output_filters;

    while (filter != NULL && filter->frec != filter_record) {
        filter = filter->next;
    }
    return filter != NULL;
}

void agent_unread_discard(request_rec *r)
{
    /* A client that waits for 100 Continue sends nothing. */
    if (r->connection->master != NULL && !r->expecting_100 && !has_filter(r)) {
        ap_add_output_filter_handle(filter_record, NULL, r, r->connection);
    }
}

void agent_unread_leave(request_rec *r)
{
    /* Before the next request httpd would read it, in a thread. */
    r->connection->keepalive = AP_CONN_CLOSE;
    agent_unread_discard(r);
}

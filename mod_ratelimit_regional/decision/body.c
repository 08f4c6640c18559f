/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and discards request bodies. */
#include "body.h"

#include <apr_atomic.h>
#include <apr_buckets.h>
#include <apr_strings.h>
#include <apr_support.h>

#include <ap_mpm.h>
#include <http_core.h>
#include <http_protocol.h>
#include <util_filter.h>

static bool has_body(const request_rec *r)
{
    return apr_table_get(r->headers_in, "Transfer-Encoding") != NULL
        || apr_table_get(r->headers_in, "Content-Length") != NULL;
}

/* Whether Content-Length exceeds our limit, or httpd's, which would respond
 * 413 once it is read. */
static bool is_too_long(const request_rec *r)
{
    const char *announced = apr_table_get(r->headers_in, "Content-Length");
    apr_off_t most = ap_get_limit_req_body(r);
    apr_off_t length = 0;

    return announced != NULL
        && (apr_strtoff(&length, announced, NULL, 10) != APR_SUCCESS
            || length > RLR_BODY_DROP_MAX || (most > 0 && length > most));
}

/* Discards the brigade and adds its length; true at the end of the body. */
static bool take(apr_bucket_brigade *brigade, apr_off_t *total)
{
    apr_off_t length = 0;
    bool ended = APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(brigade));

    apr_brigade_length(brigade, 1, &length);
    apr_brigade_cleanup(brigade);
    *total += length;
    return ended;
}

/* ---- waiting for the rest of a body ---- */

/* In total, for the body of one request. */
#define WAIT_TIME apr_time_from_sec(1)

/* Threads of this child that wait. */
static volatile apr_uint32_t waiting;

/* An eighth of the threads, at least one. */
static bool begin_wait(void)
{
    int threads = 0;

    ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);
    if (apr_atomic_inc32(&waiting) < (apr_uint32_t)(threads / 8 + 1)) {
        return true;
    }
    apr_atomic_dec32(&waiting);
    return false;
}

/* False at the deadline. An HTTP/2 stream is not waited for: its end does not
 * close the connection. */
static bool wait_for_data(request_rec *r, apr_time_t deadline)
{
    apr_socket_t *socket = ap_get_conn_socket(r->connection);
    apr_interval_time_t left = deadline - apr_time_now();
    apr_interval_time_t usual;
    apr_status_t rv;

    if (socket == NULL || r->connection->master != NULL || left <= 0
        || !begin_wait()) {
        return false;
    }
    apr_socket_timeout_get(socket, &usual);
    apr_socket_timeout_set(socket, left);
    rv = apr_wait_for_io_or_timeout(NULL, socket, 1);
    apr_socket_timeout_set(socket, usual);
    apr_atomic_dec32(&waiting);
    return rv == APR_SUCCESS;
}

/* ---- reading ---- */

/* Anything but APR_SUCCESS: the body is longer or slow, or a read failed. */
static apr_status_t read_to_end(request_rec *r)
{
    apr_bucket_brigade *brigade = apr_brigade_create(
        r->pool, r->connection->bucket_alloc);
    apr_time_t deadline = apr_time_now() + WAIT_TIME;
    apr_off_t total = 0;

    while (total <= RLR_BODY_DROP_MAX && apr_time_now() < deadline) {
        apr_status_t rv = ap_get_brigade(r->input_filters, brigade,
                                         AP_MODE_READBYTES, APR_NONBLOCK_READ,
                                         HUGE_STRING_LEN);

        if (rv == APR_SUCCESS && !APR_BRIGADE_EMPTY(brigade)) {
            if (take(brigade, &total)) {
                return APR_SUCCESS;
            }
        }
        else if (rv != APR_SUCCESS && !APR_STATUS_IS_EAGAIN(rv)) {
            return rv;
        }
        else if (!wait_for_data(r, deadline)) {
            return APR_TIMEUP;
        }
    }
    return APR_ENOSPC;
}

bool rlr_body_drop(request_rec *r)
{
    apr_status_t rv;

    /* A client that waits for 100 (Continue) has sent nothing, and httpd
     * closes the connection. */
    if (!has_body(r) || r->expecting_100) {
        return true;
    }
    rv = is_too_long(r) ? APR_ENOSPC : read_to_end(r);
    if (rv != APR_SUCCESS) {
        r->connection->keepalive = AP_CONN_CLOSE;
    }
    return rv != AP_FILTER_ERROR;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and discards request bodies. */
#include "body.h"

#include <apr_buckets.h>
#include <apr_strings.h>
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

/* Anything but APR_SUCCESS: the body is longer, or a read failed. */
static apr_status_t read_to_end(request_rec *r)
{
    apr_bucket_brigade *brigade = apr_brigade_create(
        r->pool, r->connection->bucket_alloc);
    apr_off_t total = 0;

    while (total <= RLR_BODY_DROP_MAX) {
        apr_status_t rv = ap_get_brigade(r->input_filters, brigade,
                                         AP_MODE_READBYTES, APR_BLOCK_READ,
                                         HUGE_STRING_LEN);

        if (rv != APR_SUCCESS) {
            return rv;
        }
        if (APR_BRIGADE_EMPTY(brigade)) {
            return APR_EOF;
        }
        if (take(brigade, &total)) {
            return APR_SUCCESS;
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

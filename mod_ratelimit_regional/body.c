/* SPDX-License-Identifier: Apache-2.0 */
/* Drops bodies; see body.h. */
#include "body.h"

#include <stdbool.h>

#include <apr_buckets.h>
#include <apr_strings.h>
#include <http_protocol.h>
#include <util_filter.h>

static bool has_body(const request_rec *r)
{
    return apr_table_get(r->headers_in, "Transfer-Encoding") != NULL
        || apr_table_get(r->headers_in, "Content-Length") != NULL;
}

/* Whether it is known beforehand that there is too much. */
static bool is_too_long(const request_rec *r)
{
    const char *announced = apr_table_get(r->headers_in, "Content-Length");
    apr_off_t length = 0;

    return announced != NULL
        && (apr_strtoff(&length, announced, NULL, 10) != APR_SUCCESS
            || length > RLR_BODY_DROP_MAX);
}

/* Takes what is in the brigade; true at the end of the body. */
static bool take(apr_bucket_brigade *brigade, apr_off_t *total)
{
    apr_off_t length = 0;
    bool ended = APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(brigade));

    apr_brigade_length(brigade, 1, &length);
    apr_brigade_cleanup(brigade);
    *total += length;
    return ended;
}

/* false when something is left, or could not be read. */
static bool read_to_end(request_rec *r)
{
    apr_bucket_brigade *brigade = apr_brigade_create(
        r->pool, r->connection->bucket_alloc);
    apr_off_t total = 0;

    while (total <= RLR_BODY_DROP_MAX) {
        if (ap_get_brigade(r->input_filters, brigade, AP_MODE_READBYTES,
                           APR_BLOCK_READ, HUGE_STRING_LEN)
                != APR_SUCCESS
            || APR_BRIGADE_EMPTY(brigade)) {
            return false;
        }
        if (take(brigade, &total)) {
            return true;
        }
    }
    return false;
}

void rlr_body_drop(request_rec *r)
{
    /* Who waits for 100 (Continue) has sent nothing, and httpd closes. */
    if (!has_body(r) || r->expecting_100) {
        return;
    }
    if (is_too_long(r) || !read_to_end(r)) {
        r->connection->keepalive = AP_CONN_CLOSE;
    }
}

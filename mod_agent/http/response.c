/* SPDX-License-Identifier: Apache-2.0 */
/* Sends responses; see response.h. */
#include "response.h"

#include <string.h>
#include <sys/socket.h>

#include <apr_buckets.h>
#include <apr_portable.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <util_filter.h>

#include "../core/heap.h"
#include "../wait/park.h"

/* Responses up to this size are sent without waiting for the client. */
#define LARGE_BYTES 32768

/* One brigade for the whole response, since each takes memory of the request's
 * pool until its end. */
static apr_bucket_brigade *get_brigade(agent_call_t *call)
{
    if (call->brigade == NULL) {
        call->brigade = apr_brigade_create(call->pool,
                                           call->r->connection->bucket_alloc);
    }
    return call->brigade;
}

/* Any error of the filters means that the client cannot be reached:
 * APR_ECONNABORTED. */
static apr_status_t pass(agent_call_t *call, apr_bucket *content, int flush)
{
    apr_bucket_alloc_t *alloc = call->r->connection->bucket_alloc;
    apr_status_t rv;

    get_brigade(call);
    if (content != NULL) {
        APR_BRIGADE_INSERT_TAIL(call->brigade, content);
    }
    if (flush) {
        APR_BRIGADE_INSERT_TAIL(call->brigade, apr_bucket_flush_create(alloc));
    }
    rv = ap_pass_brigade(call->r->output_filters, call->brigade);
    apr_brigade_cleanup(call->brigade);
    return rv == APR_SUCCESS && !call->r->connection->aborted
        ? APR_SUCCESS
        : APR_ECONNABORTED;
}

bool agent_response_is_document(const request_rec *r)
{
    return r->prev != NULL && r->status != HTTP_OK;
}

static void set_status(request_rec *r, int status)
{
    if (!agent_response_is_document(r)) {
        r->status = status;
    }
    r->status_line = NULL;
}

/* Responses are not cacheable: they change while a run executes. */
static void begin_content(agent_call_t *call, int status, const char *type)
{
    set_status(call->r, status);
    apr_table_setn(call->r->headers_out, "Cache-Control", "no-store");
    ap_set_content_type(call->r, type);
}

/* Holds the output of a response that is large, or follows unsent output: httpd
 * would block the thread while more than 64 KB (FlushMaxThreshold) are unread
 * by the client. */
static bool hold(const agent_call_t *call, apr_size_t length)
{
    const request_rec *r = call->r;

    return (length > LARGE_BYTES || r->connection->data_in_output_filters)
        && agent_park_hold_response(r, call->ref.deployment_id);
}

static int send_json(agent_call_t *call, int status, apr_bucket *body,
                     int flush)
{
    /* The bucket ends with the call of pass(). */
    apr_size_t length = body->length;
    bool holds = hold(call, length);

    if (length > AGENT_HEAP_LARGE) {
        agent_heap_trim_after(call->pool);
    }
    begin_content(call, status, "application/json");
    ap_set_content_length(call->r, (apr_off_t)length);
    pass(call, body, flush);
    return holds ? agent_park_send_response(call->r, length) : OK;
}

int agent_response_json_of(agent_call_t *call, int status, const char *body,
                           apr_pool_t *pool)
{
    /* Not copied unless the request ends while the core filter has a part of it
     * set aside: then by a cleanup of the text's own pool, which runs before
     * those that free the text. */
    return send_json(call, status,
                     apr_bucket_pool_create(body, strlen(body), pool,
                                            call->r->connection->bucket_alloc),
                     0);
}

int agent_response_json(agent_call_t *call, int status, const char *body)
{
    return agent_response_json_of(call, status, body, call->pool);
}

int agent_response_json_transient(agent_call_t *call, int status,
                                  const char *body)
{
    return send_json(call, status,
                     apr_bucket_transient_create(
                         body, strlen(body), call->r->connection->bucket_alloc),
                     1);
}

int agent_response_page(agent_call_t *call, const char *html)
{
    apr_table_t *headers = call->r->headers_out;

    begin_content(call, HTTP_OK, "text/html; charset=utf-8");
    apr_table_setn(headers, "Cache-Control", "public, max-age=300");
    apr_table_setn(headers, "Content-Security-Policy",
                   "default-src 'none'; base-uri 'none'; form-action 'none'; "
                   "frame-ancestors 'none'");
    apr_table_setn(headers, "Referrer-Policy", "no-referrer");
    apr_table_setn(headers, "X-Content-Type-Options", "nosniff");
    ap_set_content_length(call->r, (apr_off_t)strlen(html));
    pass(call,
         apr_bucket_pool_create(html, strlen(html), call->pool,
                                call->r->connection->bucket_alloc),
         0);
    return OK;
}

void agent_response_set_next(agent_call_t *call, const char *offset)
{
    if (offset != NULL) {
        apr_table_setn(call->r->headers_out, "X-Pagination-Next", offset);
    }
}

void agent_response_set_total(agent_call_t *call, const char *count)
{
    if (count != NULL) {
        apr_table_setn(call->r->headers_out, "X-Pagination-Total", count);
    }
}

int agent_response_empty(agent_call_t *call, int status)
{
    set_status(call->r, status);
    if (call->r->status != HTTP_NO_CONTENT) {
        ap_set_content_length(call->r, 0);
    }
    return hold(call, 0) ? agent_park_send_response(call->r, 0) : OK;
}

void agent_response_set_location(agent_call_t *call, const char *path)
{
    const request_rec *r = call->r;
    /* The Python SDK does not add the query again. */
    const char *query = r->method_number == M_GET ? r->args : NULL;

    apr_table_setn(r->headers_out, "Location",
                   apr_pstrcat(call->pool, path, query ? "?" : "",
                               query ? query : "", NULL));
}

void agent_response_set_run_location(agent_call_t *call, const char *thread_id,
                                     const char *run_id, const char *suffix)
{
    const char *path = apr_pstrcat(call->pool, thread_id ? "/threads/" : "",
                                   thread_id ? thread_id : "", "/runs/", run_id,
                                   NULL);

    apr_table_setn(
        call->r->headers_out, "Content-Location",
        apr_pstrcat(call->pool,
                    ap_escape_uri(call->pool, agent_location_prefix(call->dir)),
                    path, NULL));
    if (suffix != NULL) {
        agent_response_set_location(
            call, apr_pstrcat(call->pool, path, suffix, NULL));
    }
}

apr_status_t agent_response_begin(agent_call_t *call, const char *type)
{
    begin_content(call, HTTP_OK, type);
    /* Otherwise nginx as a reverse proxy would buffer the pieces. */
    apr_table_setn(call->r->headers_out, "X-Accel-Buffering", "no");
    return pass(call, NULL, 1);
}

apr_status_t agent_response_write(agent_call_t *call, const char *text)
{
    return pass(call,
                apr_bucket_transient_create(text, strlen(text),
                                            call->r->connection->bucket_alloc),
                1);
}

apr_status_t agent_response_write_parts(agent_call_t *call,
                                        const char *const *parts)
{
    apr_bucket_alloc_t *alloc = call->r->connection->bucket_alloc;

    for (; *parts != NULL; parts++) {
        apr_bucket *bucket = apr_bucket_transient_create(*parts, strlen(*parts),
                                                         alloc);

        APR_BRIGADE_INSERT_TAIL(get_brigade(call), bucket);
    }
    return pass(call, NULL, 1);
}

/* If the end of the connection ends the body (HTTP/1.0, which some proxies
 * use), only a TCP reset shows that the body is incomplete. */
static void reset_at_close(conn_rec *connection)
{
    const struct linger none = {.l_onoff = 1, .l_linger = 0};
    apr_os_sock_t fd;

    if (apr_os_sock_get(&fd, ap_get_conn_socket(connection)) == APR_SUCCESS) {
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    }
}

int agent_response_abort(agent_call_t *call)
{
    conn_rec *connection = call->r->connection;

    /* mod_http2 resets the stream at this bucket, as for a proxy whose backend
     * failed; it ignores `aborted`. */
    if (connection->master != NULL && !connection->aborted) {
        pass(call,
             ap_bucket_error_create(HTTP_BAD_GATEWAY, NULL, call->pool,
                                    connection->bucket_alloc),
             1);
    }
    if (connection->master == NULL && !call->r->chunked) {
        reset_at_close(connection);
    }
    /* No final chunk is sent on an aborted connection. */
    connection->aborted = 1;
    connection->keepalive = AP_CONN_CLOSE;
    return OK;
}

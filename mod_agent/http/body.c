/* SPDX-License-Identifier: Apache-2.0 */
/* Receives request bodies; see body.h. */
#include "body.h"

#include <string.h>
#include <strings.h>

#include <apr_atomic.h>
#include <apr_buckets.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <util_filter.h>

#include "../core/allocator.h"
#include "../wait/park.h"
#include "body_buffer.h"
#include "last_chunk.h"
#include "problem.h"
#include "unread.h"

/* Most consecutive empty reads while input is pending: a decompressing filter
 * may consume many small pieces before it returns a byte. */
#define EMPTY_READS 100000

/* Most reads in one turn: up to 4 MB, or some 100 us if each reads a chunk of
 * one byte. */
#define READS_AT_ONCE 512

/* Free memory that the allocator of large buffers keeps. */
#define KEPT_BYTES ((apr_size_t)512 * 1024)

struct agent_body_t {
    agent_call_t *call;
    int (*then)(agent_call_t *call);
    apr_bucket_brigade *arrived;
    agent_body_buffer_t buffer;
    bool is_complete;
};

/* ---- refusing ---- */

static apr_status_t refuse(agent_call_t *call, agent_error_id_t id,
                           const char *detail)
{
    agent_unread_leave(call->r);
    return agent_error_set(&call->err, id, detail, NULL, call->pool);
}

static apr_status_t refuse_size(agent_call_t *call)
{
    return refuse(call, AGENT_E_TOO_LARGE,
                  apr_psprintf(call->pool,
                               "The body is larger than %" APR_SIZE_T_FMT
                               " bytes.",
                               agent_body_buffer_limit(call)));
}

static apr_status_t refuse_read(agent_call_t *call, apr_status_t rv)
{
    int status = ap_map_http_request_error(rv, HTTP_BAD_REQUEST);

    if (status == AP_FILTER_ERROR) {
        call->is_answered = true;
        return refuse(call, AGENT_E_BAD_REQUEST, "httpd refused the body.");
    }
    if (status == HTTP_REQUEST_ENTITY_TOO_LARGE) {
        return refuse_size(call);
    }
    if (status == HTTP_REQUEST_TIME_OUT) {
        return refuse(call, AGENT_E_REQUEST_TIMEOUT, NULL);
    }
    return refuse(call, AGENT_E_BAD_REQUEST,
                  "The body ended too early or is badly chunked.");
}

/* ---- reading ---- */

static apr_status_t append(agent_body_t *body, const char *data,
                           apr_size_t size)
{
    if (!agent_body_buffer_append(&body->buffer, data, size)) {
        return refuse_size(body->call);
    }
    /* The client sends without waiting for 100 Continue (RFC 9110, 10.1.1). */
    body->call->r->expecting_100 = 0;
    return APR_SUCCESS;
}

static apr_status_t take_bucket(agent_body_t *body, apr_bucket *bucket)
{
    const char *data;
    apr_size_t size;
    apr_status_t rv;

    if (APR_BUCKET_IS_METADATA(bucket)) {
        body->is_complete = APR_BUCKET_IS_EOS(bucket);
        return APR_SUCCESS;
    }
    rv = apr_bucket_read(bucket, &data, &size, APR_BLOCK_READ);
    if (rv != APR_SUCCESS) {
        return refuse_read(body->call, rv);
    }
    return size > 0 ? append(body, data, size) : APR_SUCCESS;
}

static apr_status_t take_arrived(agent_body_t *body)
{
    apr_status_t rv = APR_SUCCESS;

    while (rv == APR_SUCCESS && !body->is_complete
           && !APR_BRIGADE_EMPTY(body->arrived)) {
        apr_bucket *bucket = APR_BRIGADE_FIRST(body->arrived);

        rv = take_bucket(body, bucket);
        apr_bucket_delete(bucket);
    }
    apr_brigade_cleanup(body->arrived);
    return rv;
}

/* True for input that a connection filter holds, which a poll of the socket
 * does not show, and for an error, which the next read returns. */
static bool is_input_left(const agent_body_t *body)
{
    apr_status_t rv = ap_get_brigade(body->call->r->connection->input_filters,
                                     body->arrived, AP_MODE_SPECULATIVE,
                                     APR_NONBLOCK_READ, 1);
    bool found = rv == APR_SUCCESS ? !APR_BRIGADE_EMPTY(body->arrived)
                                   : !APR_STATUS_IS_EAGAIN(rv);

    apr_brigade_cleanup(body->arrived);
    return found;
}

static apr_status_t read_once(agent_body_t *body, apr_read_type_e block)
{
    int empty = 0;
    apr_status_t rv;

    do {
        rv = ap_get_brigade(body->call->r->input_filters, body->arrived,
                            AP_MODE_READBYTES, block, HUGE_STRING_LEN);
    } while (rv == APR_SUCCESS && APR_BRIGADE_EMPTY(body->arrived)
             && block == APR_NONBLOCK_READ && ++empty < EMPTY_READS
             && is_input_left(body));
    if (block == APR_NONBLOCK_READ
        && (APR_STATUS_IS_EAGAIN(rv)
            || (rv == APR_SUCCESS && APR_BRIGADE_EMPTY(body->arrived)))) {
        return APR_EAGAIN;
    }
    return rv == APR_SUCCESS ? take_arrived(body) : refuse_read(body->call, rv);
}

/* Blocks for the rest of the body. */
static apr_status_t read_all(agent_body_t *body)
{
    apr_status_t rv = APR_SUCCESS;

    while (rv == APR_SUCCESS && !body->is_complete) {
        rv = read_once(body, APR_BLOCK_READ);
    }
    return rv;
}

/* APR_EAGAIN: all data that has arrived is read, and the body is incomplete;
 * APR_INCOMPLETE: there may be more data, but other requests are served first,
 * since a client that sends chunks of one byte could occupy the thread for
 * seconds. */
static apr_status_t read_arrived(agent_body_t *body)
{
    apr_status_t rv = APR_SUCCESS;
    int reads;

    for (reads = 0; rv == APR_SUCCESS && !body->is_complete; reads++) {
        rv = reads < READS_AT_ONCE ? read_once(body, APR_NONBLOCK_READ)
                                   : APR_INCOMPLETE;
    }
    return rv;
}

static bool is_waiting(apr_status_t rv)
{
    return rv == APR_EAGAIN || rv == APR_INCOMPLETE;
}

/* ---- receiving ---- */

/* The body is complete, or rv is an error that call->err describes. */
static int conclude(agent_body_t *body, apr_status_t rv)
{
    agent_call_t *call = body->call;

    if (rv != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    if (body->buffer.length > 0) {
        body->buffer.text[body->buffer.length] = '\0';
        call->body = body->buffer.text;
        call->body_length = body->buffer.length;
    }
    return body->then(call);
}

/* APR_ENOSPC: the body was evicted while it waited. */
static apr_status_t read_more(void *baton)
{
    agent_body_t *body = baton;
    apr_status_t rv;
    apr_size_t before;

    if (!agent_body_buffer_resume(&body->buffer)) {
        return APR_ENOSPC;
    }
    before = body->buffer.length;
    rv = read_arrived(body);
    if (is_waiting(rv)) {
        if (body->buffer.length > before) {
            agent_body_buffer_progress(&body->buffer);
        }
        agent_body_buffer_wait(&body->buffer);
    }
    return rv;
}

/* Maps the end of a wait without a complete body to its error. */
static apr_status_t refuse_wait(agent_call_t *call, apr_status_t rv)
{
    switch (rv) {
    case APR_TIMEUP:
        return refuse(call, AGENT_E_REQUEST_TIMEOUT, NULL);
    case APR_ENOSPC:
        return refuse(call, AGENT_E_REQUEST_TIMEOUT,
                      "The body did not arrive in time, and other requests "
                      "needed its memory.");
    case APR_EBUSY:
        return refuse(call, AGENT_E_OVERLOADED,
                      "Too many requests wait for the rest of their bodies, "
                      "and this one has been silent for longest.");
    default:
        return rv;
    }
}

static int end_wait(void *baton, apr_status_t rv)
{
    agent_body_t *body = baton;

    /* After a timeout of the MPM read_more() was not called. */
    agent_body_buffer_resume(&body->buffer);
    return conclude(
        body, body->is_complete ? APR_SUCCESS : refuse_wait(body->call, rv));
}

static int wait_for_rest(agent_body_t *body, bool has_more)
{
    agent_call_t *call = body->call;
    const agent_body_read_t reading = {
        .slots = call->child->bodies->slots,
        .deployment = agent_location_deployment(call->dir),
        .read = read_more,
        .run_handler = end_wait,
        .baton = body};

    if (agent_park_client(call->r) == NULL) {
        return conclude(body,
                        refuse(call, AGENT_E_OVERLOADED,
                               "No file descriptor is left for a request that "
                               "waits for the rest of its body."));
    }
    agent_body_buffer_wait(&body->buffer);
    return agent_park_read(call->r, &reading, has_more);
}

/* A body is received also for handlers that do not read it: httpd would
 * otherwise block a thread to discard it before the next request. */
bool agent_body_exists(const request_rec *r)
{
    const char *length = apr_table_get(r->headers_in, "Content-Length");

    return (length != NULL && strcmp(length, "0") != 0)
        || apr_table_get(r->headers_in, "Transfer-Encoding") != NULL;
}

void agent_body_skip(request_rec *r)
{
    if (agent_body_exists(r)) {
        agent_unread_leave(r);
    }
}

static apr_status_t check_framing(agent_call_t *call)
{
    const char *length = apr_table_get(call->r->headers_in, "Content-Length");
    const char *coding = apr_table_get(call->r->headers_in,
                                       "Transfer-Encoding");

    if (coding != NULL && strcasecmp(coding, "chunked") != 0) {
        return refuse(call, AGENT_E_MEDIA_TYPE, NULL);
    }
    return length != NULL
            && apr_atoi64(length) > (apr_int64_t)agent_body_buffer_limit(call)
        ? refuse_size(call)
        : APR_SUCCESS;
}

/* Blocks for the body, in a limited number of threads: the others serve
 * requests that do not wait for their bodies. */
static apr_status_t wait_blocking(agent_body_t *body)
{
    agent_bodies_t *bodies = body->call->child->bodies;
    apr_status_t rv;

    if (apr_atomic_inc32(&bodies->blocked) < bodies->most_blocked) {
        rv = read_all(body);
    }
    else {
        rv = refuse(body->call, AGENT_E_OVERLOADED,
                    "Too many requests wait for the rest of their bodies.");
    }
    apr_atomic_dec32(&bodies->blocked);
    return rv;
}

static apr_status_t read_blocking(agent_body_t *body)
{
    apr_status_t rv;

    do {
        rv = read_arrived(body);
    } while (rv == APR_INCOMPLETE);
    return rv == APR_EAGAIN ? wait_blocking(body) : rv;
}

static int receive(agent_body_t *body)
{
    request_rec *r = body->call->r;
    apr_status_t rv;

    if (!agent_park_can_read(r)) {
        return conclude(body, read_blocking(body));
    }
    if (apr_table_get(r->headers_in, "Transfer-Encoding") != NULL) {
        agent_last_chunk_add(r);
    }
    rv = read_arrived(body);
    return is_waiting(rv) ? wait_for_rest(body, rv == APR_INCOMPLETE)
                          : conclude(body, rv);
}

int agent_body_receive(agent_call_t *call, int (*then)(agent_call_t *call))
{
    agent_body_t *body;

    call->body = "";
    if (!agent_body_exists(call->r)) {
        return then(call);
    }
    if (check_framing(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    body = apr_pcalloc(call->pool, sizeof(*body));
    body->call = call;
    body->buffer.call = call;
    body->then = then;
    body->arrived = apr_brigade_create(call->pool,
                                       call->r->connection->bucket_alloc);
    call->incoming = body;
    return receive(body);
}

void agent_body_release(agent_call_t *call)
{
    call->body = "";
    call->body_length = 0;
    if (call->incoming != NULL) {
        agent_body_buffer_free(&call->incoming->buffer);
    }
}

apr_status_t agent_bodies_create(agent_bodies_t **out, apr_int64_t bytes,
                                 int slots, int blocked, apr_pool_t *pool)
{
    agent_bodies_t *bodies = apr_pcalloc(pool, sizeof(*bodies));
    apr_status_t rv = agent_budget_create(&bodies->budget, (apr_size_t)bytes,
                                          pool);

    bodies->most_blocked = (apr_uint32_t)blocked;
    *out = bodies;
    if (rv == APR_SUCCESS) {
        rv = agent_body_slots_create(&bodies->slots, slots, pool);
    }
    return rv == APR_SUCCESS
        ? agent_allocator_create(&bodies->allocator, KEPT_BYTES, pool)
        : rv;
}

void agent_body_register(void)
{
    agent_last_chunk_register();
    agent_unread_register();
}

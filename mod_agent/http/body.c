/* SPDX-License-Identifier: Apache-2.0 */
/* Receives request bodies; see body.h. */
#include "body.h"

#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <apr_buckets.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <util_filter.h>

#include "../core/allocator.h"
#include "../core/heap.h"
#include "../wait/budget.h"
#include "../wait/park.h"
#include "last_chunk.h"
#include "problem.h"

/* The first buffer, in the request's pool; most bodies fit. */
#define FIRST_BYTES ((apr_size_t)8 * 1024)
/* Consecutive empty reads while input is pending: a filter that decompresses
 * may consume many small pieces before it returns a byte. */
#define EMPTY_READS 100000

/* Free memory that the buffers' allocator keeps. */
#define KEPT_BYTES ((apr_size_t)512 * 1024)

struct agent_bodies_t {
    /* Of all large buffers. Connections have allocators of their own, each of
     * which would keep free memory. */
    apr_allocator_t *allocator;
    agent_budget_t *budget;
    agent_body_slots_t *slots;
};

struct agent_body_t {
    agent_call_t *call;
    int (*then)(agent_call_t *call);
    apr_bucket_brigade *arrived;
    char *text;
    apr_size_t length;
    apr_size_t capacity;
    /* Of text, if that is larger than the first buffer; else NULL. Destroyed
     * when the buffer grows, so that the smaller buffer does not remain in the
     * request's pool. */
    apr_pool_t *pool;
    /* Of the child's budget, together with pool; else NULL. */
    agent_share_t *share;
    bool is_complete;
};

/* ---- refusing ---- */

static apr_status_t refuse(agent_call_t *call, agent_error_id_t id,
                           const char *detail)
{
    call->r->connection->keepalive = AP_CONN_CLOSE;
    return agent_error_set(&call->err, id, detail, NULL, call->pool);
}

static apr_status_t refuse_size(agent_call_t *call)
{
    return refuse(call, AGENT_E_TOO_LARGE,
                  apr_psprintf(call->pool,
                               "The body is larger than %" APR_SIZE_T_FMT
                               " bytes.",
                               agent_config_max_body(call->dir)));
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
        return refuse(call, AGENT_E_LATE, NULL);
    }
    return refuse(call, AGENT_E_BAD_REQUEST,
                  "The body ended too early or is badly chunked.");
}

/* ---- the buffer ---- */

static void drop_buffer(void *data)
{
    agent_body_t *body = data;

    if (body->pool != NULL) {
        apr_pool_destroy(body->pool);
        body->pool = NULL;
    }
    body->text = NULL;
    body->length = 0;
    body->capacity = 0;
}

static apr_status_t destroy_buffer(void *body)
{
    drop_buffer(body);
    return APR_SUCCESS;
}

/* Content-Length; no bound without one, or when a filter that decompresses has
 * returned more. */
static apr_size_t find_announced(const agent_body_t *body, apr_size_t wanted)
{
    const char *text = apr_table_get(body->call->r->headers_in,
                                     "Content-Length");
    apr_int64_t announced = text != NULL ? apr_atoi64(text) : 0;

    return announced >= (apr_int64_t)wanted ? (apr_size_t)announced
                                            : APR_SIZE_MAX;
}

/* Doubles, so that all copies together are as long as the text; bounded by the
 * announced length and by AgentMaxBody. */
static apr_size_t find_capacity(const agent_body_t *body, apr_size_t wanted)
{
    apr_size_t announced = find_announced(body, wanted);
    apr_size_t most = agent_config_max_body(body->call->dir);
    apr_size_t capacity = 2 * body->capacity;

    if (capacity < FIRST_BYTES) {
        capacity = FIRST_BYTES;
    }
    if (capacity > announced) {
        capacity = announced;
    }
    if (capacity > most) {
        capacity = most;
    }
    return capacity > wanted ? capacity : wanted;
}

static void move_text(agent_body_t *body, char *text, apr_size_t capacity)
{
    if (body->length > 0) {
        memcpy(text, body->text, body->length);
    }
    body->text = text;
    body->capacity = capacity;
}

static apr_pool_t *make_buffer_pool(const agent_call_t *call)
{
    return agent_allocator_make_pool(call->child->bodies->allocator);
}

static void begin_share(agent_body_t *body)
{
    agent_call_t *call = body->call;
    const agent_share_cut_t cut = {drop_buffer, body, SHUT_RD};

    apr_pool_cleanup_register(call->pool, body, destroy_buffer,
                              apr_pool_cleanup_null);
    body->share = agent_share_add(call->child->bodies->budget, &cut,
                                  call->pool);
}

static void grow_in_own_pool(agent_body_t *body, apr_size_t capacity)
{
    apr_pool_t *old = body->pool;
    apr_size_t counted = old != NULL ? body->capacity : 0;

    if (body->share == NULL) {
        begin_share(body);
    }
    agent_share_set(body->share, capacity, apr_time_now());
    body->pool = make_buffer_pool(body->call);
    move_text(body, apr_palloc(body->pool, capacity + 1), capacity);
    if (old != NULL) {
        apr_pool_destroy(old);
    }
    if (counted <= AGENT_HEAP_LARGE && capacity > AGENT_HEAP_LARGE) {
        agent_heap_trim_after(body->call->pool);
    }
}

static void grow(agent_body_t *body, apr_size_t wanted)
{
    apr_size_t capacity = find_capacity(body, wanted);

    if (capacity > FIRST_BYTES) {
        grow_in_own_pool(body, capacity);
        return;
    }
    move_text(body, apr_palloc(body->call->pool, capacity + 1), capacity);
}

static apr_status_t append(agent_body_t *body, const char *data,
                           apr_size_t size)
{
    agent_call_t *call = body->call;

    if (size > agent_config_max_body(call->dir) - body->length) {
        return refuse_size(call);
    }
    if (size > body->capacity - body->length) {
        grow(body, body->length + size);
    }
    memcpy(body->text + body->length, data, size);
    body->length += size;
    /* The client sends without waiting for 100 Continue (RFC 9110, 10.1.1). */
    call->r->expecting_100 = 0;
    return APR_SUCCESS;
}

/* ---- reading ---- */

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

/* APR_EAGAIN: everything that has arrived is read, and the body is incomplete.
 */
static apr_status_t read_all(agent_body_t *body, apr_read_type_e block)
{
    apr_status_t rv = APR_SUCCESS;

    while (rv == APR_SUCCESS && !body->is_complete) {
        rv = read_once(body, block);
    }
    return rv;
}

/* ---- receiving ---- */

/* The body is complete, or rv is an error that call->err describes. */
static int conclude(agent_body_t *body, apr_status_t rv)
{
    agent_call_t *call = body->call;

    if (rv != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    if (body->length > 0) {
        body->text[body->length] = '\0';
        call->body = body->text;
        call->body_length = body->length;
    }
    return body->then(call);
}

/* Before the connection is returned to the MPM. */
static void pause_share(const agent_body_t *body)
{
    if (body->share != NULL) {
        agent_share_wait(body->share, agent_park_client(body->call->r),
                         apr_time_now());
    }
}

/* APR_ENOSPC: the body was cut while it waited. */
static apr_status_t resume_share(const agent_body_t *body)
{
    return body->share == NULL || agent_share_resume(body->share) ? APR_SUCCESS
                                                                  : APR_ENOSPC;
}

static apr_status_t read_more(void *baton)
{
    agent_body_t *body = baton;
    apr_status_t rv = resume_share(body);
    apr_size_t before = body->length;

    if (rv == APR_SUCCESS) {
        rv = read_all(body, APR_NONBLOCK_READ);
    }
    if (rv == APR_EAGAIN) {
        if (body->share != NULL && body->length > before) {
            agent_share_progress(body->share, apr_time_now());
        }
        pause_share(body);
    }
    return rv;
}

/* Maps the end of a wait without a complete body to its error. */
static apr_status_t refuse_wait(agent_call_t *call, apr_status_t rv)
{
    switch (rv) {
    case APR_TIMEUP:
        return refuse(call, AGENT_E_LATE, NULL);
    case APR_ENOSPC:
        return refuse(call, AGENT_E_LATE,
                      "The body did not arrive in time: others needed the "
                      "memory that its part took.");
    case APR_EBUSY:
        return refuse(call, AGENT_E_OVERLOADED,
                      "Too many requests wait for the rest of their bodies: "
                      "of this one nothing has come for longest.");
    default:
        return rv;
    }
}

static int go_on(void *baton, apr_status_t rv)
{
    agent_body_t *body = baton;

    /* After a timeout of the MPM read_more() was not called. */
    resume_share(body);
    return conclude(
        body, body->is_complete ? APR_SUCCESS : refuse_wait(body->call, rv));
}

static int wait_for_rest(agent_body_t *body)
{
    agent_call_t *call = body->call;
    const agent_reading_t reading = {call->child->bodies->slots, read_more,
                                     go_on, body};

    if (agent_park_client(call->r) == NULL) {
        return conclude(body,
                        refuse(call, AGENT_E_OVERLOADED,
                               "No file descriptor is left to wait for "
                               "the rest of the body with."));
    }
    pause_share(body);
    return agent_park_read(call->r, &reading);
}

/* A body is received also for handlers that do not read it: httpd would
 * otherwise block a thread to discard it before the next request. */
static bool has_body(const request_rec *r)
{
    const char *length = apr_table_get(r->headers_in, "Content-Length");

    return (length != NULL && strcmp(length, "0") != 0)
        || apr_table_get(r->headers_in, "Transfer-Encoding") != NULL;
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
            && apr_atoi64(length)
                > (apr_int64_t)agent_config_max_body(call->dir)
        ? refuse_size(call)
        : APR_SUCCESS;
}

static int receive(agent_body_t *body)
{
    request_rec *r = body->call->r;
    bool can_wait = agent_park_can_read(r);
    apr_status_t rv;

    if (can_wait && apr_table_get(r->headers_in, "Transfer-Encoding") != NULL) {
        agent_last_chunk_add(r);
    }
    rv = read_all(body, can_wait ? APR_NONBLOCK_READ : APR_BLOCK_READ);
    return can_wait && rv == APR_EAGAIN ? wait_for_rest(body)
                                        : conclude(body, rv);
}

int agent_body_receive(agent_call_t *call, int (*then)(agent_call_t *call))
{
    agent_body_t *body;

    call->body = "";
    if (!has_body(call->r)) {
        return then(call);
    }
    if (check_framing(call) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    body = apr_pcalloc(call->pool, sizeof(*body));
    body->call = call;
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
        drop_buffer(call->incoming);
        if (call->incoming->share != NULL) {
            agent_share_set(call->incoming->share, 0, apr_time_now());
        }
    }
}

apr_status_t agent_bodies_create(agent_bodies_t **out, apr_int64_t bytes,
                                 int slots, apr_pool_t *pool)
{
    agent_bodies_t *bodies = apr_pcalloc(pool, sizeof(*bodies));
    apr_status_t rv = agent_budget_create(&bodies->budget, (apr_size_t)bytes,
                                          pool);

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
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer of a request body; see body_buffer.h. */
#include "body_buffer.h"

#include <string.h>
#include <sys/socket.h>

#include <apr_strings.h>

#include "../core/allocator.h"
#include "../core/heap.h"
#include "../core/lock.h"
#include "../wait/park.h"
#include "router.h"

/* The first buffer, in the request's pool; most bodies fit. */
#define FIRST_BYTES ((apr_size_t)8 * 1024)

static void drop_text(void *data)
{
    agent_body_buffer_t *buffer = data;

    if (buffer->pool != NULL) {
        apr_pool_destroy(buffer->pool);
        buffer->pool = NULL;
    }
    buffer->text = NULL;
    buffer->length = 0;
    buffer->capacity = 0;
}

static apr_status_t drop_with_pool(void *buffer)
{
    drop_text(buffer);
    return APR_SUCCESS;
}

/* Returns Content-Length; no bound without one, or when a decompressing filter
 * has returned more. */
static apr_size_t find_announced(const agent_body_buffer_t *buffer,
                                 apr_size_t wanted)
{
    const char *text = apr_table_get(buffer->call->r->headers_in,
                                     "Content-Length");
    apr_int64_t announced = text != NULL ? apr_atoi64(text) : 0;

    return announced >= (apr_int64_t)wanted ? (apr_size_t)announced
                                            : APR_SIZE_MAX;
}

apr_size_t agent_body_buffer_limit(const agent_call_t *call)
{
    apr_size_t most = agent_location_max_body(call->dir);

    return call->api->max_body > 0 && call->api->max_body < most
        ? call->api->max_body
        : most;
}

/* Doubles the capacity, so that the bytes of all copies together are about the
 * length of the text; bounded by the announced length and by the limit. */
static apr_size_t find_capacity(const agent_body_buffer_t *buffer,
                                apr_size_t wanted)
{
    apr_size_t announced = find_announced(buffer, wanted);
    apr_size_t most = agent_body_buffer_limit(buffer->call);
    apr_size_t capacity = 2 * buffer->capacity;

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

static void move_text(agent_body_buffer_t *buffer, char *text,
                      apr_size_t capacity)
{
    if (buffer->length > 0) {
        memcpy(text, buffer->text, buffer->length);
    }
    buffer->text = text;
    buffer->capacity = capacity;
}

static void begin_share(agent_body_buffer_t *buffer)
{
    agent_call_t *call = buffer->call;
    const agent_budget_eviction_t eviction = {drop_text, buffer, SHUT_RD};

    apr_pool_cleanup_register(call->pool, buffer, drop_with_pool,
                              apr_pool_cleanup_null);
    buffer->share = agent_budget_share_add(call->child->bodies->budget,
                                           &eviction, call->pool);
    agent_budget_share_set_owner(buffer->share,
                                 agent_location_deployment(call->dir));
}

static void grow_in_own_pool(agent_body_buffer_t *buffer, apr_size_t capacity)
{
    apr_pool_t *old = buffer->pool;
    apr_size_t counted = old != NULL ? buffer->capacity : 0;

    if (buffer->share == NULL) {
        begin_share(buffer);
    }
    agent_budget_share_set(buffer->share, capacity, apr_time_now());
    buffer->pool = agent_allocator_make_pool(
        agent_lock_choose_allocator(buffer->call->child->bodies->allocator));
    move_text(buffer, apr_palloc(buffer->pool, capacity + 1), capacity);
    if (old != NULL) {
        apr_pool_destroy(old);
    }
    if (counted <= AGENT_HEAP_LARGE && capacity > AGENT_HEAP_LARGE) {
        agent_heap_trim_after(buffer->call->pool);
    }
}

static void grow(agent_body_buffer_t *buffer, apr_size_t wanted)
{
    apr_size_t capacity = find_capacity(buffer, wanted);

    if (capacity > FIRST_BYTES) {
        grow_in_own_pool(buffer, capacity);
        return;
    }
    move_text(buffer, apr_palloc(buffer->call->pool, capacity + 1), capacity);
}

bool agent_body_buffer_append(agent_body_buffer_t *buffer, const char *data,
                              apr_size_t size)
{
    if (size > agent_body_buffer_limit(buffer->call) - buffer->length) {
        return false;
    }
    if (size > buffer->capacity - buffer->length) {
        grow(buffer, buffer->length + size);
    }
    memcpy(buffer->text + buffer->length, data, size);
    buffer->length += size;
    return true;
}

void agent_body_buffer_free(agent_body_buffer_t *buffer)
{
    drop_text(buffer);
    if (buffer->share != NULL) {
        agent_budget_share_set(buffer->share, 0, apr_time_now());
    }
}

void agent_body_buffer_wait(const agent_body_buffer_t *buffer)
{
    if (buffer->share != NULL) {
        agent_budget_share_wait(
            buffer->share, agent_park_client(buffer->call->r), apr_time_now());
    }
}

bool agent_body_buffer_resume(const agent_body_buffer_t *buffer)
{
    return buffer->share == NULL || agent_budget_share_resume(buffer->share);
}

void agent_body_buffer_progress(const agent_body_buffer_t *buffer)
{
    if (buffer->share != NULL) {
        agent_budget_share_progress(buffer->share, apr_time_now());
    }
}

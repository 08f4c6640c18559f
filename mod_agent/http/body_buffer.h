/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffer of a request body, private to body.c. It grows with the body; its
 * memory counts in the child's budget for bodies (wait/budget.h), which may
 * evict it while the request waits.
 */
#ifndef AGENT_HTTP_BODY_BUFFER_H
#define AGENT_HTTP_BODY_BUFFER_H

#include "../wait/body_slot.h"
#include "../wait/budget.h"
#include "call.h"

struct agent_bodies_t {
    /* For all large buffers: the allocator of each connection would keep free
     * memory of its own. */
    apr_allocator_t *allocator;
    agent_budget_t *budget;
    agent_body_slots_t *slots;
    /* Threads that block for a body; see apr_atomic.h. */
    volatile apr_uint32_t blocked;
    apr_uint32_t most_blocked;
};

/* In the call's pool; at first zeroed except for call. */
typedef struct agent_body_buffer_t {
    agent_call_t *call;
    /* With room for a NUL after capacity; NULL while it is empty. */
    char *text;
    apr_size_t length;
    apr_size_t capacity;
    /* The pool of text, if that is larger than the first buffer; else NULL.
     * Destroyed when the buffer grows, so that the smaller buffer does not stay
     * in the request's pool. */
    apr_pool_t *pool;
    /* Its share of the child's budget, if pool is set; else NULL. */
    agent_budget_share_t *share;
} agent_body_buffer_t;

/* Returns how many bytes the body may have. */
apr_size_t agent_body_buffer_limit(const agent_call_t *call);

/* Appends a copy of data. False: the body would be larger than the limit. */
bool agent_body_buffer_append(agent_body_buffer_t *buffer, const char *data,
                              apr_size_t size);

/* Frees the text. */
void agent_body_buffer_free(agent_body_buffer_t *buffer);

/* Marks the request as waiting for its client: until agent_body_buffer_resume()
 * the text may be evicted. */
void agent_body_buffer_wait(const agent_body_buffer_t *buffer);

/* Ends the wait; no effect without one. Returns false, once, if the text was
 * evicted. */
bool agent_body_buffer_resume(const agent_body_buffer_t *buffer);

/* Records that the client has sent data. */
void agent_body_buffer_progress(const agent_body_buffer_t *buffer);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that grow, in pools: each growth moves to a new pool below the parent
 * and gives the old one back, so that a daemon's memory stays flat.
 */
#ifndef AGENT_SUPERVISOR_BUFFER_H
#define AGENT_SUPERVISOR_BUFFER_H

#include <apr_pools.h>

typedef struct agent_buffer_t {
    apr_pool_t *parent;
    /* NULL while nothing is allocated. */
    apr_pool_t *pool;
    /* The content is data[start .. end). */
    char *data;
    apr_size_t start;
    apr_size_t end;
    apr_size_t size;
} agent_buffer_t;

/* An empty buffer; what it allocates ends with parent at the latest. */
void agent_buffer_init(agent_buffer_t *buffer, apr_pool_t *parent);

/* Makes room for length more bytes behind the content and returns it. */
char *agent_buffer_reserve(agent_buffer_t *buffer, apr_size_t length);

/* Counts length bytes, written into the reserved room, as content. */
void agent_buffer_commit(agent_buffer_t *buffer, apr_size_t length);

void agent_buffer_append(agent_buffer_t *buffer, const char *bytes,
                         apr_size_t length);

void agent_buffer_print(agent_buffer_t *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Drops length bytes at the front; an empty large buffer is given back. */
void agent_buffer_consume(agent_buffer_t *buffer, apr_size_t length);

/* First byte of the content; not terminated. NULL when never filled. */
char *agent_buffer_text(const agent_buffer_t *buffer);

apr_size_t agent_buffer_length(const agent_buffer_t *buffer);

#endif

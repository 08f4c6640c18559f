/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that grow. Each buffer keeps its bytes in a pool of its own below the
 * parent, so that growing gives the old bytes back.
 */
#ifndef AGENT_RUNNER_BUFFER_H
#define AGENT_RUNNER_BUFFER_H

#include <stddef.h>

#include <apr_pools.h>

typedef struct runner_buffer_t {
    apr_pool_t *parent;
    /* NULL until the first byte is stored. */
    apr_pool_t *pool;
    /* NULL while empty and never used; else bytes[length] is NUL. */
    char *bytes;
    size_t length;
    size_t capacity;
} runner_buffer_t;

/* An empty buffer that lives as long as parent. */
void runner_buffer_init(runner_buffer_t *buffer, apr_pool_t *parent);

/* Makes room for more bytes behind length; the contents stay. */
void runner_buffer_reserve(runner_buffer_t *buffer, size_t more);

/* Adds a copy of the bytes. */
void runner_buffer_append(runner_buffer_t *buffer, const char *bytes,
                          size_t length);

/* Removes the first length bytes; an emptied large buffer gives its room up. */
void runner_buffer_consume(runner_buffer_t *buffer, size_t length);

/* Forgets the contents. */
void runner_buffer_clear(runner_buffer_t *buffer);

/* The contents as text, "" when empty; valid until the next change. */
const char *runner_buffer_text(const runner_buffer_t *buffer);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer in pools. Each growth moves the content to a new pool
 * below the parent and destroys the old one, so that the memory of a
 * long-running process stays flat. Bytes are appended at the end and consumed
 * at the front; a NUL, which is not counted, follows the content.
 */
#ifndef AGENT_CORE_BUFFER_H
#define AGENT_CORE_BUFFER_H

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

/* Makes an empty buffer; its memory is freed with parent at the latest. */
void agent_buffer_init(agent_buffer_t *buffer, apr_pool_t *parent);

/* Makes room for length more bytes after the content. Returns a pointer to it,
 * valid until the next change. */
char *agent_buffer_reserve(agent_buffer_t *buffer, apr_size_t length);

/* Adds length bytes, written into the reserved room, to the content. */
void agent_buffer_commit(agent_buffer_t *buffer, apr_size_t length);

/* Adds a copy of the bytes. */
void agent_buffer_append(agent_buffer_t *buffer, const char *bytes,
                         apr_size_t length);

/* Adds a printf-style text. */
void agent_buffer_print(agent_buffer_t *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Removes length bytes at the front; frees the memory of a large buffer that
 * becomes empty. */
void agent_buffer_consume(agent_buffer_t *buffer, apr_size_t length);

/* Removes all bytes; frees the memory of a large buffer. */
void agent_buffer_clear(agent_buffer_t *buffer);

/* Removes all but the first length bytes. */
void agent_buffer_truncate(agent_buffer_t *buffer, apr_size_t length);

/* Returns the content, NUL-terminated, valid until the next change; before the
 * first byte "", which must not be written to. */
char *agent_buffer_text(const agent_buffer_t *buffer);

/* Returns the number of bytes of the content. */
apr_size_t agent_buffer_length(const agent_buffer_t *buffer);

#endif

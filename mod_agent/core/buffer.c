/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer in pools; see buffer.h. */
#include "buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FIRST_SIZE 4000
/* An emptied buffer larger than this does not keep its memory. */
#define KEPT_SIZE ((apr_size_t)64 * 1024)

void agent_buffer_init(agent_buffer_t *buffer, apr_pool_t *parent)
{
    memset(buffer, 0, sizeof(*buffer));
    buffer->parent = parent;
}

static void move_to_new_pool(agent_buffer_t *buffer, apr_size_t size)
{
    apr_size_t length = buffer->end - buffer->start;
    apr_pool_t *pool;
    char *data;

    apr_pool_create(&pool, buffer->parent);
    /* One more for the NUL. */
    data = apr_palloc(pool, size + 1);
    if (buffer->data != NULL) {
        memcpy(data, buffer->data + buffer->start, length);
    }
    if (buffer->pool != NULL) {
        apr_pool_destroy(buffer->pool);
    }
    buffer->pool = pool;
    buffer->data = data;
    buffer->start = 0;
    buffer->end = length;
    buffer->size = size;
    data[length] = '\0';
}

char *agent_buffer_reserve(agent_buffer_t *buffer, apr_size_t length)
{
    apr_size_t used = buffer->end - buffer->start;
    apr_size_t size = buffer->size > 0 ? buffer->size : FIRST_SIZE;

    if (buffer->data != NULL && buffer->size - buffer->end >= length) {
        return buffer->data + buffer->end;
    }
    /* Moving the content to the front is cheap when little is left of it. */
    if (buffer->data != NULL && buffer->size >= used + length
        && used <= buffer->size / 2) {
        memmove(buffer->data, buffer->data + buffer->start, used + 1);
        buffer->start = 0;
        buffer->end = used;
        return buffer->data + used;
    }
    while (size < used + length) {
        size *= 2;
    }
    move_to_new_pool(buffer, size);
    return buffer->data + buffer->end;
}

void agent_buffer_commit(agent_buffer_t *buffer, apr_size_t length)
{
    buffer->end += length;
    buffer->data[buffer->end] = '\0';
}

void agent_buffer_append(agent_buffer_t *buffer, const char *bytes,
                         apr_size_t length)
{
    if (length > 0) {
        memcpy(agent_buffer_reserve(buffer, length), bytes, length);
        agent_buffer_commit(buffer, length);
    }
}

void agent_buffer_print(agent_buffer_t *buffer, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length > 0) {
        char *at = agent_buffer_reserve(buffer, (apr_size_t)length);

        va_start(args, format);
        vsnprintf(at, (apr_size_t)length + 1, format, args);
        va_end(args);
        buffer->end += (apr_size_t)length;
    }
}

void agent_buffer_consume(agent_buffer_t *buffer, apr_size_t length)
{
    buffer->start += length;
    if (buffer->start >= buffer->end) {
        agent_buffer_clear(buffer);
    }
}

void agent_buffer_clear(agent_buffer_t *buffer)
{
    buffer->start = 0;
    buffer->end = 0;
    if (buffer->size > KEPT_SIZE) {
        apr_pool_destroy(buffer->pool);
        agent_buffer_init(buffer, buffer->parent);
    }
    else if (buffer->data != NULL) {
        buffer->data[0] = '\0';
    }
}

void agent_buffer_truncate(agent_buffer_t *buffer, apr_size_t length)
{
    if (length < agent_buffer_length(buffer)) {
        buffer->end = buffer->start + length;
        buffer->data[buffer->end] = '\0';
    }
}

char *agent_buffer_text(const agent_buffer_t *buffer)
{
    return buffer->data != NULL ? buffer->data + buffer->start : "";
}

apr_size_t agent_buffer_length(const agent_buffer_t *buffer)
{
    return buffer->end - buffer->start;
}

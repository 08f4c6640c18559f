/* SPDX-License-Identifier: Apache-2.0 */
/* Growing bytes without malloc; see buffer.h. */
#include "buffer.h"

#include <string.h>

#define SIZE_FIRST 256
/* What an empty buffer may keep for the next time. */
#define SIZE_KEPT ((size_t)256 * 1024)

void runner_buffer_init(runner_buffer_t *buffer, apr_pool_t *parent)
{
    memset(buffer, 0, sizeof(*buffer));
    buffer->parent = parent;
}

static void move_to(runner_buffer_t *buffer, size_t capacity)
{
    apr_pool_t *pool;
    char *bytes;

    apr_pool_create(&pool, buffer->parent);
    bytes = apr_palloc(pool, capacity + 1);
    if (buffer->bytes != NULL) {
        memcpy(bytes, buffer->bytes, buffer->length);
    }
    bytes[buffer->length] = '\0';
    if (buffer->pool != NULL) {
        apr_pool_destroy(buffer->pool);
    }
    buffer->pool = pool;
    buffer->bytes = bytes;
    buffer->capacity = capacity;
}

void runner_buffer_reserve(runner_buffer_t *buffer, size_t more)
{
    size_t wanted = buffer->length + more;
    size_t capacity = buffer->capacity ? buffer->capacity : SIZE_FIRST;

    if (wanted <= buffer->capacity && buffer->bytes != NULL) {
        return;
    }
    while (capacity < wanted) {
        capacity *= 2;
    }
    move_to(buffer, capacity);
}

void runner_buffer_append(runner_buffer_t *buffer, const char *bytes,
                          size_t length)
{
    runner_buffer_reserve(buffer, length);
    memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = '\0';
}

void runner_buffer_clear(runner_buffer_t *buffer)
{
    buffer->length = 0;
    if (buffer->capacity > SIZE_KEPT) {
        apr_pool_destroy(buffer->pool);
        runner_buffer_init(buffer, buffer->parent);
    }
    else if (buffer->bytes != NULL) {
        buffer->bytes[0] = '\0';
    }
}

void runner_buffer_consume(runner_buffer_t *buffer, size_t length)
{
    if (length == 0) {
        return;
    }
    if (length >= buffer->length) {
        runner_buffer_clear(buffer);
        return;
    }
    buffer->length -= length;
    memmove(buffer->bytes, buffer->bytes + length, buffer->length + 1);
}

const char *runner_buffer_text(const runner_buffer_t *buffer)
{
    return buffer->bytes ? buffer->bytes : "";
}

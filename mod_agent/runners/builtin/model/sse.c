/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing server-sent events. An event is complete with the empty line after
 * it: the last one of a broken stream is dropped. */
#include "sse.h"

#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

void runner_sse_init(runner_sse_t *sse,
                     bool (*on_event)(void *baton, const char *name,
                                      const char *data, size_t length),
                     void *baton, apr_pool_t *pool)
{
    memset(sse, 0, sizeof(*sse));
    agent_buffer_init(&sse->line, pool);
    agent_buffer_init(&sse->name, pool);
    agent_buffer_init(&sse->data, pool);
    sse->on_event = on_event;
    sse->baton = baton;
}

/* An empty line completes the event, if there is one. */
static apr_status_t end_event(runner_sse_t *sse)
{
    bool may_continue = true;

    if (sse->has_data) {
        may_continue = sse->on_event(
            sse->baton,
            agent_buffer_length(&sse->name) > 0 ? agent_buffer_text(&sse->name)
                                                : "message",
            agent_buffer_text(&sse->data), agent_buffer_length(&sse->data));
    }
    agent_buffer_clear(&sse->name);
    agent_buffer_clear(&sse->data);
    sse->has_data = false;
    return may_continue ? APR_SUCCESS : APR_EGENERAL;
}

static apr_status_t add_data(runner_sse_t *sse, const char *value,
                             size_t length)
{
    if (agent_buffer_length(&sse->data) + length + 1 > RUNNER_SSE_MAX) {
        return APR_ENOSPC;
    }
    if (sse->has_data) {
        agent_buffer_append(&sse->data, "\n", 1);
    }
    agent_buffer_append(&sse->data, value, length);
    sse->has_data = true;
    return APR_SUCCESS;
}

static bool is_field(const char *line, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(line, name, length) == 0;
}

static apr_status_t take_line(runner_sse_t *sse, const char *line,
                              size_t length)
{
    const char *colon = memchr(line, ':', length);
    size_t name_length = colon ? (size_t)(colon - line) : length;
    const char *value = colon ? colon + 1 : line + length;

    if (length == 0) {
        return end_event(sse);
    }
    if (value < line + length && *value == ' ') {
        value++;
    }
    if (is_field(line, name_length, "data")) {
        return add_data(sse, value, (size_t)(line + length - value));
    }
    if (is_field(line, name_length, "event")) {
        agent_buffer_clear(&sse->name);
        agent_buffer_append(&sse->name, value, (size_t)(line + length - value));
    }
    return APR_SUCCESS;
}

static apr_status_t end_line(runner_sse_t *sse)
{
    const char *line = agent_buffer_text(&sse->line);
    size_t length = agent_buffer_length(&sse->line);
    apr_status_t rv;

    if (!sse->is_past_first && length >= 3
        && memcmp(line, BYTE_ORDER_MARK, 3) == 0) {
        line += 3;
        length -= 3;
    }
    sse->is_past_first = true;
    rv = take_line(sse, line, length);
    agent_buffer_clear(&sse->line);
    return rv;
}

/* The number of bytes before the next end of a line. */
static size_t measure_line(const char *bytes, size_t length)
{
    size_t i = 0;

    while (i < length && bytes[i] != '\n' && bytes[i] != '\r') {
        i++;
    }
    return i;
}

apr_status_t runner_sse_feed(runner_sse_t *sse, const char *bytes,
                             size_t length)
{
    while (length > 0) {
        size_t part = measure_line(bytes, length);
        apr_status_t rv;

        if (part == 0 && *bytes == '\n' && sse->was_cr) {
            sse->was_cr = false;
            bytes++;
            length--;
            continue;
        }
        if (agent_buffer_length(&sse->line) + part > RUNNER_SSE_MAX) {
            return APR_ENOSPC;
        }
        agent_buffer_append(&sse->line, bytes, part);
        sse->was_cr = false;
        if (part == length) {
            return APR_SUCCESS;
        }
        sse->was_cr = bytes[part] == '\r';
        rv = end_line(sse);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        bytes += part + 1;
        length -= part + 1;
    }
    return APR_SUCCESS;
}

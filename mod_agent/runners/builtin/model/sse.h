/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events from bytes that arrive in any pieces (WHATWG HTML,
 * "Server-sent events"): LF, CR and CRLF end lines, comments are dropped,
 * several data lines become one text, `id` and `retry` have no meaning here.
 */
#ifndef AGENT_RUNNER_SSE_H
#define AGENT_RUNNER_SSE_H

#include <stdbool.h>

#include <apr_errno.h>

#include "core/buffer.h"

/* The longest line and the longest data of one event. */
#define RUNNER_SSE_MAX ((size_t)1024 * 1024)

typedef struct runner_sse_t {
    /* The line being read, without its end. */
    runner_buffer_t line;
    /* Of the event being read. */
    runner_buffer_t name;
    runner_buffer_t data;
    bool has_data;
    /* The last byte was a CR: an LF after it ends no line of its own. */
    bool was_cr;
    /* Lines so far; the first may begin with a byte order mark. */
    bool is_past_first;
    /*
     * An event is complete; name is "message" when it has none. False stops
     * the reading.
     */
    bool (*on_event)(void *baton, const char *name, const char *data,
                     size_t length);
    void *baton;
} runner_sse_t;

/* Begins a stream; its buffers live as long as pool. */
void runner_sse_init(runner_sse_t *sse,
                     bool (*on_event)(void *baton, const char *name,
                                      const char *data, size_t length),
                     void *baton, apr_pool_t *pool);

/*
 * Reads the next bytes. APR_EGENERAL when on_event returned false, APR_ENOSPC
 * when a line or an event is too long; nothing more may be fed then.
 */
apr_status_t runner_sse_feed(runner_sse_t *sse, const char *bytes,
                             size_t length);

#endif

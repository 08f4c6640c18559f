/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parser of server-sent events (WHATWG HTML, "Server-sent events"), for input
 * in pieces of any size. LF, CR and CRLF end a line; several data lines are
 * joined; comments, `id` and `retry` are ignored.
 */
#ifndef AGENT_RUNNER_SSE_H
#define AGENT_RUNNER_SSE_H

#include <stdbool.h>

#include <apr_errno.h>

#include "core/buffer.h"

/* The longest line and the longest data of one event, in bytes. */
#define RUNNER_SSE_MAX ((size_t)1024 * 1024)

typedef struct runner_sse_t {
    /* The unfinished line. */
    agent_buffer_t line;
    /* The unfinished event. */
    agent_buffer_t name;
    agent_buffer_t data;
    bool has_data;
    /* The last byte was a CR: an LF after it ends the same line. */
    bool was_cr;
    /* The first line, which may begin with a byte order mark, is over. */
    bool is_past_first;
    /* Called with each complete event; name is "message" when the event has
     * none. False stops the parser. */
    bool (*on_event)(void *baton, const char *name, const char *data,
                     size_t length);
    void *baton;
} runner_sse_t;

/* Initialises a parser, whose buffers are in pool. */
void runner_sse_init(runner_sse_t *sse,
                     bool (*on_event)(void *baton, const char *name,
                                      const char *data, size_t length),
                     void *baton, apr_pool_t *pool);

/*
 * Parses the next bytes. Returns APR_EGENERAL when on_event returned false,
 * APR_ENOSPC when a line or an event is too long; the parser must not be used
 * after that.
 */
apr_status_t runner_sse_feed(runner_sse_t *sse, const char *bytes,
                             size_t length);

#endif

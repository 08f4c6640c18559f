/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events (WHATWG HTML, 9.2). */
#ifndef AGENT_STREAM_SSE_H
#define AGENT_STREAM_SSE_H

#include <stdbool.h>

#include "../http/call.h"

/* Sends the headers of an event stream. APR_ECONNABORTED: the client has
 * disconnected. */
apr_status_t agent_sse_begin(agent_call_t *call);

/*
 * Returns one event as text, in pool; id NULL: without an id. Line ends in
 * data, JSON text, are white space between its tokens and become spaces: an
 * event has one data line.
 */
const char *agent_sse_event(const char *id, const char *event, const char *data,
                            apr_pool_t *pool);

/* Adds an event to texts (of const char *) for agent_sse_send(); data is
 * borrowed until then. A large event is not copied. */
void agent_sse_add(apr_array_header_t *texts, const char *id, const char *event,
                   const char *data, apr_pool_t *pool);

/* Adds an event of which only the beginning and the end of the data are texts:
 * one text that ends with `before`, and one that begins with `after`. */
void agent_sse_add_split(apr_array_header_t *texts, const char *id,
                         const char *event, const char *before,
                         const char *after, apr_pool_t *pool);

/* Makes line ends in a part of the data of an event spaces: either text, or a
 * copy in pool. */
const char *agent_sse_one_line(const char *text, apr_pool_t *pool);

/* Sends texts. APR_ECONNABORTED: the client has disconnected. */
apr_status_t agent_sse_send(agent_call_t *call, apr_array_header_t *texts,
                            apr_pool_t *pool);

/*
 * Whether an event belongs to one of the stream modes and comes from one of the
 * namespaces (NULL-terminated; NULL: all), or belongs to no mode (metadata,
 * error, ...). The name of an event of a subgraph ends with its namespace,
 * `values|NAMESPACE`; the namespace of the root graph is "".
 */
bool agent_sse_is_wanted(const char *const *modes,
                         const char *const *namespaces, const char *event);

/*
 * Reads Last-Event-ID: a number from -1 (all events). *after is unchanged when
 * the header is absent. Error: BAD_REQUEST.
 */
apr_status_t agent_sse_read_cursor(apr_int64_t *after, agent_call_t *call);

#endif

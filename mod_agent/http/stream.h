/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events (WHATWG HTML, 9.2), sent as they happen. */
#ifndef AGENT_HTTP_STREAM_H
#define AGENT_HTTP_STREAM_H

#include <stdbool.h>

#include "call.h"

/* Sends the headers of an event stream. */
apr_status_t agent_stream_begin(agent_call_t *call);

/*
 * One event as text in pool; id NULL = without one. Line ends inside the data,
 * which JSON knows only as white space, become spaces: an event has one data
 * line.
 */
const char *agent_stream_event(const char *id, const char *event,
                               const char *data, apr_pool_t *pool);

/*
 * Adds an event to texts (of const char *), which agent_stream_send() sends at
 * once; data is borrowed until then. A large event is not copied.
 */
void agent_stream_add(apr_array_header_t *texts, const char *id,
                      const char *event, const char *data, apr_pool_t *pool);

/* APR_ECONNABORTED when the client is gone. */
apr_status_t agent_stream_send(agent_call_t *call, apr_array_header_t *texts,
                               apr_pool_t *pool);

/*
 * Whether an event is one of the NULL-terminated stream modes (NULL = all). A
 * name may end with the namespace of a subgraph: `values|NAMESPACE`. What
 * belongs to no mode (metadata, error, ...) is always shown.
 */
bool agent_stream_shows(const char *const *modes, const char *event);

/*
 * Reads Last-Event-ID: a number from -1 (everything) up; *after stays when it
 * is absent. Anything else is 400.
 */
apr_status_t agent_stream_cursor(apr_int64_t *after, agent_call_t *call);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Responses with values that are too large for one text: they are read and sent
 * in parts, a part in each turn. */
#ifndef AGENT_STREAM_LARGE_VALUES_H
#define AGENT_STREAM_LARGE_VALUES_H

#include "../http/call.h"
#include "../wait/turn.h"

typedef struct agent_large_values_t agent_large_values_t;

/* Reads the next part of about `bytes`; *next: the cursor of the part after it,
 * NULL for the last one. Errors are in call->err. */
typedef apr_status_t (*agent_large_read_fn_t)(
    const char **part, const char **next, agent_call_t *call, const void *baton,
    const char *cursor, apr_size_t bytes, apr_pool_t *pool);

/* Any other text that is sent in parts: an event with values, or a list;
 * borrowed. */
typedef struct agent_large_source_t {
    agent_large_read_fn_t read;
    const void *baton;
    /* The texts before and after the parts. */
    const char *head;
    const char *tail;
    /* Cursor of the first part; shorter than AGENT_VALUES_CURSOR_SIZE. */
    const char *cursor;
    /* The headers were sent, as in the middle of an event stream. */
    bool begun;
} agent_large_source_t;

/* Makes, in pool, the response, or a part of it, of a request that already
 * waits. The request's turns are agent_large_values_take_turn(), or call
 * agent_large_values_send(). */
agent_large_values_t *agent_large_values_make(
    agent_call_t *call, const agent_large_source_t *source, apr_pool_t *pool);

/*
 * Responds with body, a JSON text in pool, and the values of the thread
 * call->ref from cursor (model/values.h); NULL: it is complete. pool: below
 * call->pool, destroyed when it is no longer needed. 503 when large values
 * may not wait for their client, 500 when body has no mark for them. Returns
 * what the handler returns to httpd.
 */
int agent_large_values_respond(agent_call_t *call, const char *body,
                               const char *cursor, apr_pool_t *pool)
    __attribute__((warn_unused_result));

/*
 * Sends the body in turns of a request that already waits. This is the first
 * turn, for reason; agent_large_values_take_turn() takes the others with *out.
 * ref: the thread; its texts are in call->pool. body and cursor are copied.
 * begun: the headers were sent.
 */
agent_turn_t agent_large_values_begin(agent_large_values_t **out,
                                      agent_call_t *call,
                                      const agent_run_ref_t *ref,
                                      const char *body, const char *cursor,
                                      bool begun, agent_wake_reason_t reason,
                                      apr_pool_t *scratch);

/*
 * Sends the next part; all of them for STOPPING, since the client could not
 * continue elsewhere. MORE: to be called again when the client has read it;
 * WAIT: again after a heartbeat, the database is not available; DONE: the
 * response is complete, or was aborted.
 */
agent_turn_t agent_large_values_take_turn(agent_large_values_t *values,
                                          agent_wake_reason_t reason,
                                          apr_pool_t *scratch);

/* Sends the next part of values that are not all of the response. APR_EAGAIN:
 * to be called again when the client has read it; APR_EOF: all was sent;
 * APR_ECONNABORTED: the client has disconnected; otherwise call->err is set,
 * and the call may be repeated. */
apr_status_t agent_large_values_send(agent_large_values_t *values,
                                     apr_pool_t *scratch);

/* After an error of agent_large_values_send(): whether the part has failed too
 * often to be tried again. */
bool agent_large_values_has_exhausted_retries(
    const agent_large_values_t *values);

#endif

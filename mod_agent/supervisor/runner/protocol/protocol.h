/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of the runner protocol, parsed and made; ../../../runners/PROTOCOL.md
 * specifies them.
 *
 * Runners are not trusted: every line passes the strict scan (core/scan.h), and
 * its outer members are checked. Nested values are stored byte for byte and not
 * parsed.
 */
#ifndef AGENT_SUPERVISOR_PROTOCOL_H
#define AGENT_SUPERVISOR_PROTOCOL_H

#include <stdbool.h>

#include <apr_pools.h>

#include "../../../core/buffer.h"
#include "../../lease/lease.h"

#define AGENT_PROTOCOL_VERSION 2
/* The longest line, without its newline. */
#define AGENT_PROTOCOL_MAX_LINE ((apr_size_t)8 * 1024 * 1024)
/* The longest name of an event, in bytes: a mode, and the namespace of a
 * subgraph. */
#define AGENT_PROTOCOL_MAX_EVENT ((apr_size_t)4096)
/* The longest namespace of a graph, in bytes: ten levels of subgraphs, with
 * names of 160. Indexes of the database have it. */
#define AGENT_PROTOCOL_MAX_NS ((apr_size_t)2048)
/* The longest id of a task. */
#define AGENT_PROTOCOL_MAX_TASK_ID 128
/* A value of the graph library: bytes of one part, and parts. */
#define AGENT_PROTOCOL_MAX_PART  ((apr_size_t)4 * 1024 * 1024)
#define AGENT_PROTOCOL_MAX_PARTS 16

typedef enum agent_line_type_t {
    AGENT_LINE_IMPORTING,
    AGENT_LINE_READY,
    AGENT_LINE_PONG,
    /* The lines below name a run. */
    AGENT_LINE_WANT,
    AGENT_LINE_REQUEST,
    /* Output of the run, which is stored. */
    AGENT_LINE_EVENT,
    AGENT_LINE_CHECKPOINT,
    AGENT_LINE_TASK,
    /* A record of the graph library: blob, put, put_writes. */
    AGENT_LINE_RECORD,
    AGENT_LINE_END
} agent_line_type_t;

typedef struct agent_line_t {
    agent_line_type_t type;
    agent_lease_key_t key;
    /* IMPORTING: the name of a graph, with its escapes and without quotes,
     * borrowed from the line; NULL: none. */
    const char *graph;
    apr_size_t graph_length;
    /* READY: runs at once. */
    int slots;
    /* READY, borrowed from the line: the object of graphs; the object of the
     * runtime, NULL for none. */
    const char *graphs;
    const char *runtime;
    apr_size_t runtime_length;
    /* PONG: how long the runner's loop has not turned, 0 by default. */
    apr_int64_t ping_id;
    apr_int64_t busy_ms;
    /* PONG: it wants to be replaced. */
    bool wants_replacement;
    /* WANT: bytes of the lines to come, newlines included; at least 1. */
    apr_size_t wanted;
    /* REQUEST: the runner's number for it; the operation, its arguments (an
     * object) and the cursor, borrowed from the line; no arguments and no
     * cursor have length 0. */
    apr_int64_t request_id;
    const char *op;
    apr_size_t op_length;
    const char *args;
    apr_size_t args_length;
    const char *cursor;
    apr_size_t cursor_length;
    /* CHECKPOINT, RECORD: the runner's number for the reply to it; -1: it wants
     * none. */
    apr_int64_t ack;
    /* END: whether its status is success, or drained. */
    bool success;
    bool is_drained;
    /* END: whether it has a value, which may be null. */
    bool has_value;
    /* END with status error: the JSON text of its error, borrowed from the
     * line; NULL otherwise. */
    const char *failure;
    apr_size_t failure_length;
} agent_line_t;

/* Parses a line, given without its newline. Returns NULL if it is valid, else
 * the reason, a constant such as "has no valid epoch". */
const char *agent_protocol_read(agent_line_t *line, const char *text,
                                apr_size_t length);

/* Append a line for a runner to out, newline included. graphs: a JSON object;
 * application: one, or NULL; failed: an object of graphs that are not to be
 * imported, or NULL. */
void agent_protocol_hello(agent_buffer_t *out, const char *application,
                          const char *graphs, const char *failed);
void agent_protocol_cancel(agent_buffer_t *out, const agent_lease_key_t *key);
/* reason: a word; deadline_ms: when the run will be cancelled. */
void agent_protocol_stop(agent_buffer_t *out, const agent_lease_key_t *key,
                         const char *reason, apr_int64_t deadline_ms);
void agent_protocol_go(agent_buffer_t *out, const agent_lease_key_t *key);
void agent_protocol_ping(agent_buffer_t *out, apr_int64_t id);
void agent_protocol_drain(agent_buffer_t *out);

/* Append a reply: result is JSON text, also of several lines, cursor a word, or
 * NULL after the last part. refuse: an error with two texts that need no
 * escapes. */
void agent_protocol_reply(agent_buffer_t *out, const agent_lease_key_t *key,
                          apr_int64_t id, const char *result,
                          const char *cursor);
void agent_protocol_refuse(agent_buffer_t *out, const agent_lease_key_t *key,
                           apr_int64_t id, const char *code,
                           const char *message);

/* Lines that the supervisor stores in place of a runner, without newline, in
 * pool. error is the name of the failure, message a sentence. */
const char *agent_protocol_metadata(const agent_lease_key_t *key, int attempt,
                                    apr_pool_t *pool);
const char *agent_protocol_error(const agent_lease_key_t *key,
                                 const char *error, const char *message,
                                 apr_pool_t *pool);
const char *agent_protocol_end(const agent_lease_key_t *key, const char *status,
                               const char *error, const char *message,
                               apr_pool_t *pool);

#endif

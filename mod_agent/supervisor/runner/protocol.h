/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of the runner protocol, parsed and made; ../../runners/PROTOCOL.md
 * specifies them.
 *
 * Runners are not trusted: every line passes the strict scan and is checked
 * member by member. It is stored byte for byte, so only the outer object is
 * parsed here.
 */
#ifndef AGENT_SUPERVISOR_PROTOCOL_H
#define AGENT_SUPERVISOR_PROTOCOL_H

#include <stdbool.h>

#include <apr_pools.h>

#include "../../core/buffer.h"
#include "../lease/lease.h"

#define AGENT_PROTOCOL_VERSION 1
/* The longest line, without its newline. */
#define AGENT_PROTOCOL_MAX_LINE ((apr_size_t)8 * 1024 * 1024)

typedef enum agent_line_type_t {
    AGENT_LINE_READY,
    AGENT_LINE_PONG,
    /* The lines below name a run. */
    AGENT_LINE_WANT,
    AGENT_LINE_EVENT,
    AGENT_LINE_CHECKPOINT,
    AGENT_LINE_END
} agent_line_type_t;

typedef struct agent_line_t {
    agent_line_type_t type;
    agent_lease_key_t key;
    /* READY: runs at once. */
    int slots;
    /* PONG. */
    apr_int64_t ping_id;
    /* WANT: bytes of the lines to come, newlines included; at least 1. */
    apr_size_t wanted;
    /* END: whether its status is success. */
    bool success;
    /* END with status error: the JSON text of its error, borrowed from the
     * line; NULL otherwise. */
    const char *failure;
    apr_size_t failure_length;
} agent_line_t;

/* Parses a line without its newline. NULL: it is valid; else the reason, a
 * constant half sentence. */
const char *agent_protocol_read(agent_line_t *line, const char *text,
                                apr_size_t length);

/* Appends a line for a runner to out, newline included. */
void agent_protocol_hello(agent_buffer_t *out, const char *graphs);
void agent_protocol_cancel(agent_buffer_t *out, const agent_lease_key_t *key);
void agent_protocol_go(agent_buffer_t *out, const agent_lease_key_t *key);
void agent_protocol_ping(agent_buffer_t *out, apr_int64_t id);
void agent_protocol_drain(agent_buffer_t *out);

/* Lines that the supervisor stores for a runner, without newline, in pool.
 * error is the name of the failure, message a sentence. */
const char *agent_protocol_metadata(const agent_lease_key_t *key, int attempt,
                                    apr_pool_t *pool);
const char *agent_protocol_error(const agent_lease_key_t *key,
                                 const char *error, const char *message,
                                 apr_pool_t *pool);
const char *agent_protocol_end(const agent_lease_key_t *key, const char *status,
                               const char *error, const char *message,
                               apr_pool_t *pool);

#endif
